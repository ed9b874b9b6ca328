/**
 * The multi-call entry: the name it was called by decides which part runs.
 * Parts are imported only when called, so that each pays for itself alone.
 */
import { identity } from "../identity.ts";
import { type Part, programNames } from "./programs.ts";

interface Program {
  /** Runs to the end and answers the exit code. */
  run(args: readonly string[]): Promise<number>;
}

const LOADERS: Readonly<Record<Part, () => Promise<Program>>> = {
  plugin: () => import("./plugin.ts"),
  ipam: () => import("./ipam.ts"),
  hostLocal: () => import("./host-local.ts"),
  portmap: () => import("./portmap.ts"),
  bandwidth: () => import("./bandwidth.ts"),
  admin: () => import("./admin.ts"),
};

const { part, args } = chosenPart(fileNameOf(process.argv0), process.argv.slice(2));
const program = await LOADERS[part]();
process.exitCode = await program.run(args);

/** The name it was invoked by; failing that the first argument (`bun main.ts NAME …`); failing both, the plugin. */
function chosenPart(invokedAs: string, args: readonly string[]): { part: Part; args: readonly string[] } {
  const invoked = partNamed(invokedAs);
  if (invoked !== undefined) return { part: invoked, args };

  const [first = "", ...rest] = args;
  const asked = partNamed(first);
  return asked === undefined ? { part: "plugin", args } : { part: asked, args: rest };
}

/** What `basename()` does, without the import of node:path: half a millisecond of every call. */
function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function partNamed(name: string): Part | undefined {
  for (const [part, programName] of Object.entries(programNames(identity))) {
    if (programName === name && isPart(part)) return part;
  }
  return undefined;
}

function isPart(text: string): text is Part {
  return text in LOADERS;
}
