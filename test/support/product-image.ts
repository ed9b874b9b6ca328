/**
 * The image of the built executable, as `make image` builds it for this machine's architecture. It is built once for
 * every build of the executable.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { OWN_ARCHITECTURE } from "../../scripts/image/archive.ts";
import { buildImage, imageName } from "../../scripts/image/build-image.ts";
import { APT_HELPER } from "../../scripts/image/download.ts";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { builtProgram } from "./run-plugin.ts";

export interface ProductImage {
  /** With registry and tag. Use it with `imagePullPolicy: Never` or `IfNotPresent`. */
  readonly name: string;
  readonly archive: string;
}

const FOLDER = join(import.meta.dir, "../../dist");
const SOURCES = join(import.meta.dir, "../../scripts/image");
const PREFIX = "test-image-";
const FASTEST = 1;

/** Why there is none here; undefined if there is. */
export function productImageProblem(): string | undefined {
  return Bun.which("dpkg-deb") === null || !existsSync(APT_HELPER) ? "needs Debian's dpkg-deb and apt" : undefined;
}

export async function productImage(): Promise<ProductImage> {
  const name = imageName(identity, VERSION);
  const executable = builtProgram(identity.product);
  const file = `${PREFIX}${hashOf(executable)}.tar`;
  const archive = join(FOLDER, file);
  if (existsSync(archive)) return { name, archive };

  const unfinished = `${archive}.${process.pid}`;
  await buildImage({
    names: identity,
    version: VERSION,
    architecture: OWN_ARCHITECTURE,
    executable,
    time: 0,
    compressionLevel: FASTEST,
    archive: unfinished,
  });
  renameSync(unfinished, archive);
  removeOlder(file);
  return { name, archive };
}

function hashOf(executable: string): string {
  const sources = readdirSync(SOURCES).sort();
  const inputs = [executable, ...sources.map((source) => join(SOURCES, source))];
  return inputs.reduce((seed, input) => Bun.hash.wyhash(readFileSync(input), seed), 0n).toString(16);
}

/** Those of earlier builds; one that is not finished may be another process's. */
function removeOlder(kept: string): void {
  const older = readdirSync(FOLDER).filter((file) => file.startsWith(PREFIX) && file.endsWith(".tar") && file !== kept);
  for (const file of older) rmSync(join(FOLDER, file), { force: true });
}
