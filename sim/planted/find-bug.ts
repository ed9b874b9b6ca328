/** Runs the simulation on a copy of this repository with a bug in it. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { SeedsReport } from "../run/run-seeds.ts";

const REPOSITORY = resolve(import.meta.dir, "../..");
const COPIED = ["src", "sim", "test/support", "identity", "package.json", "tsconfig.json"];
/** The first seeds find most bugs. */
const SEEDS_AT_ONCE = 20;

export interface FoundBug {
  /** The first that fails; `undefined` if none did in time. */
  readonly seed: number | undefined;
  /** In words: what was violated, after how many seeds and how long. */
  readonly description: string;
}

/** Throws if the patch cannot be applied. */
export async function findBug(patch: string, { minutes }: { readonly minutes: number }): Promise<FoundBug> {
  const copy = mkdtempSync(join(tmpdir(), "planted-"));
  try {
    for (const place of COPIED) {
      mkdirSync(dirname(join(copy, place)), { recursive: true });
      cpSync(join(REPOSITORY, place), join(copy, place), { recursive: true });
    }
    symlinkSync(join(REPOSITORY, "node_modules"), join(copy, "node_modules"));
    await applyPatch(patch, copy);
    return await playUntilFound(copy, minutes);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function applyPatch(patch: string, copy: string): Promise<void> {
  // Outside of a repository, whatever folder the copy is in.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(copy) };
  const child = Bun.spawn(["git", "apply", patch], { cwd: copy, env, stdout: "ignore", stderr: "pipe" });
  const trouble = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`Cannot apply ${patch}: ${trouble}`);
}

async function playUntilFound(copy: string, minutes: number): Promise<FoundBug> {
  const began = performance.now();
  const seconds = () => Math.round((performance.now() - began) / 1_000);
  for (let first = 1; seconds() < minutes * 60; first += SEEDS_AT_ONCE) {
    const played = await playSeeds(copy, { seeds: `${first}-${first + SEEDS_AT_ONCE - 1}` });
    const [seed] = played.failed.toSorted((left, right) => left - right);
    if (seed !== undefined) return { seed, description: `seed ${seed}, ${seconds()} s: ${played.violated}` };
  }
  return { seed: undefined, description: `not found in ${seconds()} s` };
}

/** The failed seeds, and the first line about them. */
export async function playSeeds(
  repository: string,
  { seeds }: { readonly seeds: string },
): Promise<{ readonly failed: readonly number[]; readonly violated: string }> {
  const command = [process.execPath, "sim/main.ts", "--part", "--seeds", seeds, "--until-failure"];
  const child = Bun.spawn(command, { cwd: repository, stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const [output, trouble] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  if (output.trim() === "") throw new Error(`The simulation ended without a report: ${trouble}`);
  const { failed } = JSON.parse(output) as SeedsReport;
  return { failed, violated: trouble.split("\n")[0] ?? "" };
}
