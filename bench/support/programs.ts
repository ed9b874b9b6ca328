/** Builds the programs that benchmarks measure, in the same way as a release. */
import { existsSync } from "node:fs";
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

/** Builds a commit of this repository, and returns the directory of its programs. Its dependencies are those of its own lock file. */
export async function buildRelease(commit: string): Promise<string> {
  const hash = (await outputOf(["git", "rev-parse", "--verify", `${commit}^{commit}`])).trim();
  const folder = join(root, "dist/releases", hash);
  if (!existsSync(join(folder, "dist/bin", identity.product))) {
    await outputOf(["sh", "-c", `mkdir -p "${folder}" && git archive ${hash} | tar --extract --directory "${folder}"`]);
    await outputOf(["make", "build"], folder);
  }
  return join(folder, "dist/bin");
}

async function outputOf(command: string[], cwd = root): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "inherit" });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`Cannot build a release: "${command.join(" ")}" failed`);
  return output;
}

/** Builds a program that does nothing, compiled like the product: the cost of the runtime alone. */
export async function buildEmptyProgram(folder: string): Promise<string> {
  const entry = join(folder, "empty.ts");
  const executable = join(folder, "empty");
  await Bun.write(entry, "export {};\n");
  await compileExecutable({ entry, executable });
  return executable;
}
