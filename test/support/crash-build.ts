/** Builds the executable with crash points, under all its names, once per test file. */
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export interface CrashBuild {
  readonly program: string;
  /** For CNI_PATH. */
  readonly directory: string;
  remove(): void;
}

const ROOT = dirname(dirname(import.meta.dir));

export function buildWithCrashPoints(): CrashBuild {
  const { path, remove } = temporaryDirectory("crash-build");
  const directory = join(path, "bin");
  mkdirSync(directory, { recursive: true });
  const program = join(directory, identity.product);
  const script = `
    import { compileExecutable } from ${JSON.stringify(join(ROOT, "scripts/compile.ts"))};
    const entry = ${JSON.stringify(join(ROOT, "src/bin/main.ts"))};
    await compileExecutable({ entry, executable: ${JSON.stringify(program)}, crashPoints: "with" });`;
  const built = Bun.spawnSync([process.execPath, "-e", script], { cwd: ROOT });
  if (built.exitCode !== 0) throw new Error(`Cannot build with crash points: ${built.stderr}`);
  for (const name of Object.values(programNames(identity))) {
    if (name !== identity.product) symlinkSync(program, join(directory, name));
  }
  return { program, directory, remove };
}
