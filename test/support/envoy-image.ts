/** The image of Envoy for pods on a test node, written once into the cache of the test parts. */
import { copyFileSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheRoot } from "../parts/build.ts";
import { envoyProgram } from "./envoy.ts";
import { fillRootfs, writeTestImage } from "./rootfs.ts";

/** `envoy` with the libraries that it needs, and busybox. Use it with `imagePullPolicy: Never`. */
export const ENVOY_IMAGE = "vt.invalid/envoy:1";

/** The path of its archive. */
export async function envoyImage(): Promise<string> {
  const program = envoyProgram();
  // The cache's name of the program changes with it.
  const archive = join(cacheRoot(), `image-of-${basename(dirname(program))}.tar`);
  if (existsSync(archive)) return archive;

  const growing = `${archive}.${process.pid}`;
  const rootfs = `${growing}.rootfs`;
  fillRootfs(rootfs);
  copyFileSync(program, join(rootfs, "bin/envoy"));
  for (const library of await librariesOf(program)) {
    mkdirSync(join(rootfs, dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), join(rootfs, library));
  }
  await writeTestImage({ name: ENVOY_IMAGE, rootfs, entrypoint: ["/bin/envoy"], archive: growing });
  rmSync(rootfs, { recursive: true });
  renameSync(growing, archive);
  return archive;
}

/** The paths of the libraries and of the loader, as the program names them. */
async function librariesOf(program: string): Promise<readonly string[]> {
  const printed = await new Response(Bun.spawn(["ldd", program]).stdout).text();
  return [...printed.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].flatMap(([, path]) => (path === undefined ? [] : [path]));
}
