/**
 * Builds the executable and creates a symlink for each program name:
 *   bun scripts/build.ts --identity identity/vendor.json --out dist [--all-targets]
 * `--all-targets` builds for linux x64 and arm64 into `<out>/<target>/bin`.
 */
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import defaultNames from "../identity/vendor.json";
import { programNames } from "../src/bin/programs.ts";
import type { Identity } from "../src/identity.ts";
import { compileExecutable, type Target } from "./compile.ts";
import { readIdentity } from "./identity.ts";

const { values } = parseArgs({
  options: {
    identity: { type: "string", default: "identity/vendor.json" },
    out: { type: "string", default: "dist" },
    "all-targets": { type: "boolean", default: false },
  },
});

const root = dirname(import.meta.dir);
const identityFile = resolve(values.identity);
const identity = await readIdentity(identityFile, defaultNames);

if (values["all-targets"]) {
  for (const target of ["bun-linux-x64", "bun-linux-arm64"] as const) {
    await build(identity, join(values.out, target.replace("bun-", ""), "bin"), target);
  }
} else {
  await build(identity, join(values.out, "bin"), undefined);
}

async function build(names: Identity, directory: string, target: Target | undefined): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const executable = join(directory, names.product);
  await compileExecutable({ entry: join(root, "src/bin/main.ts"), executable, identityFile, target });
  for (const name of Object.values(programNames(names))) link(directory, name, names.product);
  console.log(`built ${executable} (${Object.values(programNames(names)).join(", ")})`);
}

function link(directory: string, name: string, executable: string): void {
  if (name === executable) return;
  const path = join(directory, name);
  rmSync(path, { force: true });
  symlinkSync(executable, path);
}
