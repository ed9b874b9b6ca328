/** The images of pods on a test node, written once into the cache of the test parts. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheRoot } from "../parts/build.ts";
import { kubeProgram } from "./kube-apiserver.ts";
import { fillRootfs, writeTestImage } from "./rootfs.ts";

/** Only waits: the image of sandboxes. */
export const PAUSE_IMAGE = "vt.invalid/pause:1";
/** `agnhost netexec --http-port=80` and other servers and clients, and busybox. Use it with `imagePullPolicy: Never`. */
export const AGNHOST_IMAGE = "vt.invalid/agnhost:1";

/** The archives of both images. */
export async function kubeImages(): Promise<readonly string[]> {
  // The cache's name of the programs changes with them.
  const directory = join(cacheRoot(), `images-of-${basename(dirname(kubeProgram("agnhost")))}`);
  const archives = ["pause.tar", "agnhost.tar"].map((name) => join(directory, name));
  if (existsSync(directory)) return archives;

  const growing = `${directory}.${process.pid}`;
  const rootfs = (name: "pause" | "agnhost") => join(growing, `${name}-rootfs`);
  const archive = (name: "pause" | "agnhost") => join(growing, `${name}.tar`);
  mkdirSync(rootfs("pause"), { recursive: true });
  fillRootfs(rootfs("agnhost"));
  for (const name of ["pause", "agnhost"] as const) {
    copyFileSync(kubeProgram(name), join(rootfs(name), name));
    chmodSync(join(rootfs(name), name), 0o755);
  }
  await writeTestImage({
    name: PAUSE_IMAGE,
    rootfs: rootfs("pause"),
    entrypoint: ["/pause"],
    archive: archive("pause"),
  });
  await writeTestImage({
    name: AGNHOST_IMAGE,
    rootfs: rootfs("agnhost"),
    entrypoint: ["/agnhost"],
    command: ["pause"],
    archive: archive("agnhost"),
  });
  for (const name of ["pause", "agnhost"] as const) rmSync(rootfs(name), { recursive: true });
  try {
    renameSync(growing, directory);
  } catch {
    // Another run was faster.
    rmSync(growing, { recursive: true });
  }
  return archives;
}
