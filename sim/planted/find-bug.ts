/** Runs the simulation on a copy of this repository with a bug in it. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { OWN_SCRIPT } from "./play-seed.ts";
import type { Searched } from "./search-seeds.process.ts";

const REPOSITORY = resolve(import.meta.dir, "../..");
const COPIED = ["src", "data", "sim", "test/support", "identity", "package.json", "tsconfig.json"];

export interface FoundBug {
  /** The first that violates what it must; `undefined` if none did in time. */
  readonly seed?: number;
  readonly what?: string;
  /** How many seeds were played. */
  readonly played: number;
  readonly seconds: number;
}

/** Plays seeds in the copy until the bug is found. Throws if the patch cannot be applied. */
export async function findBug(patch: string, { minutes }: { readonly minutes: number }): Promise<FoundBug> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  const copy = mkdtempSync(join(tmpdir(), "planted-"));
  try {
    for (const place of COPIED) {
      mkdirSync(dirname(join(copy, place)), { recursive: true });
      cpSync(join(REPOSITORY, place), join(copy, place), { recursive: true });
    }
    symlinkSync(join(REPOSITORY, "node_modules"), join(copy, "node_modules"));
    await run(["git", "apply", patchFile(patch)], copy);
    let played = 0;
    for (let next = OWN_SCRIPT; ; ) {
      const left = minutes - seconds() / 60;
      if (left <= 0) return { played, seconds: seconds() };
      const command = [process.execPath, "sim/planted/search-seeds.process.ts", patch, String(next), String(left)];
      const searched = JSON.parse(await run(command, copy)) as Searched;
      played += searched.played;
      next = searched.next;
      if (searched.seed !== undefined)
        return { seed: searched.seed, what: searched.what ?? "", played, seconds: seconds() };
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Throws if it cannot. */
export async function checkPatch(patch: string): Promise<void> {
  await run(["git", "apply", "--check", patchFile(patch)], REPOSITORY);
}

function patchFile(patch: string): string {
  return join(import.meta.dir, `${patch}.patch`);
}

async function run(command: readonly string[], cwd: string): Promise<string> {
  // Outside of a repository, whatever folder the copy is in.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(cwd) };
  const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, trouble] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`"${command.join(" ")}" failed: ${trouble}`);
  return output;
}
