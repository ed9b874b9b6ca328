/**
 * The multi-call entry: the name it was called by decides which part runs.
 * Parts are imported only when called, so that each pays for itself alone.
 */
import { basename } from "node:path";
import { identity } from "../identity.ts";
import { type Part, programNames } from "./programs.ts";

interface Program {
  /** Runs to the end and answers the exit code. */
  run(): Promise<number>;
}

const LOADERS: Readonly<Record<Part, () => Promise<Program>>> = {
  plugin: () => import("./plugin.ts"),
};

const invokedAs = basename(process.argv0);
const part = partNamed(invokedAs) ?? "plugin";
const program = await LOADERS[part]();
process.exitCode = await program.run();

function partNamed(name: string): Part | undefined {
  for (const [part, programName] of Object.entries(programNames(identity))) {
    if (programName === name && isPart(part)) return part;
  }
  return undefined;
}

function isPart(text: string): text is Part {
  return text in LOADERS;
}
