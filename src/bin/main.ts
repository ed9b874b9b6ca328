/**
 * The multi-call entry: the name it was called by decides which part runs.
 *
 * What stands here and below is compiled apart from the parts (scripts/compile.ts):
 * a call that is answered at once, or handed over, loads nothing else.
 */
import { identity } from "../identity.ts";
import { runCall } from "./call.ts";
import { type Part, programNames } from "./programs.ts";

const { part, args } = chosenPart(fileNameOf(process.argv0), process.argv.slice(2));
process.exitCode = await run(part, args);

async function run(part: Part, args: readonly string[]): Promise<number> {
  if (part === "admin") return (await import("./parts.ts")).runAdmin(args);
  if (part === "node") return (await import("./parts.ts")).runNode(args);
  return runCall(part, args);
}
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
  const names = programNames(identity);
  for (const part in names) if (isPart(part, names) && names[part] === name) return part;
  return undefined;
}

function isPart(text: string, names: Readonly<Record<Part, string>>): text is Part {
  return text in names;
}
