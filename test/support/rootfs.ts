/**
 * The root file system of containers under test: Debian's static busybox, also as a
 * one-layer OCI image that needs no registry.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWN_ARCHITECTURE, writeImageArchive } from "../../scripts/image/archive.ts";
import type { Host } from "./host.ts";

/** Named like an image of a local registry, so that no client adds a registry of its own. */
export const IMAGE = "vt.invalid/busybox:1";

/** Runs until it is killed, as the sandbox of a pod needs. */
const PAUSE = ["/bin/sleep", "1000000"];

const APPLETS = ["sh", "ip", "ping", "ping6", "httpd", "nc", "nslookup", "wget"].concat([
  "cat",
  "sleep",
  "true",
  "mkdir",
  "hostname",
]);

/** Why the root file system cannot be created; undefined if it can. */
export function rootfsProblem(): string | undefined {
  const busybox = Bun.which("busybox");
  if (busybox === null) return "needs busybox-static";
  return needsLoader(readFileSync(busybox)) ? "needs busybox-static (this busybox is dynamic)" : undefined;
}

/** Whether a 64-bit ELF program has a header of type 3, the path of a dynamic loader. */
function needsLoader(program: Buffer): boolean {
  const [start, size, count] = [
    Number(program.readBigUInt64LE(32)),
    program.readUInt16LE(54),
    program.readUInt16LE(56),
  ];
  return Array.from({ length: count }, (_, index) => program.readUInt32LE(start + index * size)).includes(3);
}

/** Creates the root file system in the host; returns its path there. */
export function makeRootfs(host: Host): string {
  const rootfs = join(host.directory, "rootfs");
  fillRootfs(host.view(rootfs));
  return rootfs;
}

/** Writes busybox and its applets into a directory; `/www/index.html` contains "hello\n". */
export function fillRootfs(outside: string): void {
  for (const folder of ["bin", "proc", "sys", "dev", "tmp", "etc", "run", "root", "www"]) {
    mkdirSync(join(outside, folder), { recursive: true });
  }
  const busybox = join(outside, "bin/busybox");
  copyFileSync(Bun.which("busybox") ?? "/bin/busybox", busybox);
  chmodSync(busybox, 0o755);
  for (const applet of APPLETS) symlinkSync("busybox", join(outside, "bin", applet));
  writeFileSync(join(outside, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  writeFileSync(join(outside, "www/index.html"), "hello\n");
}

/** Creates the image's archive from the root file system; returns its path in the host. */
export async function makeImageArchive(host: Host, rootfs: string): Promise<string> {
  const archive = join(host.directory, "image.tar");
  await writeTestImage({ name: IMAGE, rootfs: host.view(rootfs), entrypoint: PAUSE, archive: host.view(archive) });
  return archive;
}

interface TestImage {
  readonly name: string;
  /** The directory whose content becomes the image. */
  readonly rootfs: string;
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
  /** The file to write. */
  readonly archive: string;
}

export async function writeTestImage({ rootfs, ...plan }: TestImage): Promise<void> {
  const layers = [{ directory: rootfs, time: 0 }];
  await writeImageArchive({
    ...plan,
    architecture: OWN_ARCHITECTURE,
    layers,
    path: "/bin",
    time: 0,
    compressionLevel: FASTEST,
  });
}

const FASTEST = 1;
