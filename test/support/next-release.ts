/** The executable of this product with another version, for tests of upgrades. */
import { join } from "node:path";
import { version } from "../../package.json";
import { OWN_ARCHITECTURE } from "../../scripts/image/archive.ts";
import { buildImage, imageName } from "../../scripts/image/build-image.ts";
import { identity } from "../../src/identity.ts";
import type { ProductImage } from "./product-image.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export interface OtherRelease extends Disposable {
  readonly executable: string;
  /** As the program prints it. */
  readonly version: string;
}

const ROOT = join(import.meta.dir, "../..");

/** A later one. */
export function buildNextRelease(): OtherRelease {
  return buildRelease(`${version}-next`);
}

/** `stamp`: its version, without the "v". */
export function buildRelease(stamp: string): OtherRelease {
  const { path, remove } = temporaryDirectory("other-release");
  const executable = join(path, identity.product);
  const script = `
    import { compileExecutable } from ${JSON.stringify(join(ROOT, "scripts/compile.ts"))};
    const entry = ${JSON.stringify(join(ROOT, "src/bin/main.ts"))};
    await compileExecutable({ entry, executable: ${JSON.stringify(executable)}, version: ${JSON.stringify(stamp)} });`;
  const built = Bun.spawnSync([process.execPath, "-e", script], { cwd: ROOT });
  if (built.exitCode !== 0) throw new Error(`Cannot build release ${stamp}: ${built.stderr}`);
  return { executable, version: `v${stamp}`, [Symbol.dispose]: remove };
}

const FASTEST = 1;

/** Its image, beside the executable. */
export async function imageOfRelease({ executable, version: tag }: OtherRelease): Promise<ProductImage> {
  const archive = `${executable}.tar`;
  await buildImage({
    names: identity,
    version: tag,
    architecture: OWN_ARCHITECTURE,
    executable,
    time: 0,
    compressionLevel: FASTEST,
    archive,
  });
  return { name: imageName(identity, tag), archive };
}
