/** Builds the programs that benchmarks measure, in the same way as a release. */
import { join } from "node:path";
import { compileExecutable } from "../../scripts/compile.ts";
import { identity } from "../../src/identity.ts";

const root = join(import.meta.dir, "../..");

/** Builds the product and returns the directory of its programs. */
export async function buildProduct(): Promise<string> {
  const build = Bun.spawn([process.execPath, "scripts/build.ts"], { cwd: root, stdout: "ignore", stderr: "inherit" });
  if ((await build.exited) !== 0) throw new Error(`Cannot measure "${identity.product}": it does not build`);
  return join(root, "dist/bin");
}

/** Builds a program that does nothing, compiled like the product: the cost of the runtime alone. */
export async function buildEmptyProgram(folder: string): Promise<string> {
  const entry = join(folder, "empty.ts");
  const executable = join(folder, "empty");
  await Bun.write(entry, "export {};\n");
  await compileExecutable({ entry, executable });
  return executable;
}
