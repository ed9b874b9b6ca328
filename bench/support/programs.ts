/** The programs that benchmarks measure, built as they ship. */
import { join } from "node:path";
import { compileExecutable } from "../../scripts/compile.ts";
import { identity } from "../../src/identity.ts";

const root = join(import.meta.dir, "../..");

/** Builds the product afresh and gives the folder of its names. */
export async function buildProduct(): Promise<string> {
  const build = Bun.spawn([process.execPath, "scripts/build.ts"], { cwd: root, stdout: "ignore", stderr: "inherit" });
  if ((await build.exited) !== 0) throw new Error(`Cannot measure "${identity.product}": it does not build`);
  return join(root, "dist/bin");
}

/** A program that does nothing, compiled as the product is: what the runtime alone costs. */
export async function buildEmptyProgram(folder: string): Promise<string> {
  const entry = join(folder, "empty.ts");
  const executable = join(folder, "empty");
  await Bun.write(entry, "export {};\n");
  await compileExecutable({ entry, executable });
  return executable;
}
