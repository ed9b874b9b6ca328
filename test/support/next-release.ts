/** The executable of this product with a later version, for tests of upgrades. */
import { join } from "node:path";
import { version } from "../../package.json";
import { identity } from "../../src/identity.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export interface NextRelease extends Disposable {
  readonly executable: string;
  /** As the program prints it. */
  readonly version: string;
}

const ROOT = join(import.meta.dir, "../..");

export function buildNextRelease(): NextRelease {
  const { path, remove } = temporaryDirectory("next-release");
  const executable = join(path, identity.product);
  const next = `${version}-next`;
  const script = `
    import { compileExecutable } from ${JSON.stringify(join(ROOT, "scripts/compile.ts"))};
    const entry = ${JSON.stringify(join(ROOT, "src/bin/main.ts"))};
    await compileExecutable({ entry, executable: ${JSON.stringify(executable)}, version: ${JSON.stringify(next)} });`;
  const built = Bun.spawnSync([process.execPath, "-e", script], { cwd: ROOT });
  if (built.exitCode !== 0) throw new Error(`Cannot build the next release: ${built.stderr}`);
  return { executable, version: `v${next}`, [Symbol.dispose]: remove };
}
