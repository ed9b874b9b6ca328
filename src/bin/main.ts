/**
 * The entry of the multi-call executable: the name it was called by decides which part runs.
 *
 * Parts are imported when they are called: a call that is answered at once, or
 * handed over, loads none of them.
 */
import { identity } from "../identity.ts";
import { runCall } from "./call.ts";
import { type Part, type PluginPart, partNamed, programNames } from "./programs.ts";
import { codeLoadingVariable } from "./trusted-environment.ts";
import { writeTextAndExit } from "./write-and-exit.ts";

const { part, args } = chosenPart(fileNameOf(process.argv0), process.argv.slice(2));
const forbidden = codeLoadingVariable(process.env);
process.exitCode = forbidden === undefined ? await run(part, args) : await refuseVariable(part, forbidden);

/** Not async: a call usually ends the process before there is anything to wait for. */
function run(part: Part, args: readonly string[]): Promise<number> {
  return isPlugin(part) ? runCall(part, args) : runPart(part, args);
}

/** The variable has acted already: no later line of this program can be relied on. */
async function refuseVariable(part: Part, name: string): Promise<number> {
  const message = `Cannot run: the environment variable "${name}" is set; remove it from the environment of the caller`;
  if (!isPlugin(part)) {
    console.error(message);
    return 1;
  }
  const [{ errorReply }, { PluginError }, { NEWEST_VERSION }] = await Promise.all([
    import("../cni/reply.ts"),
    import("../errors.ts"),
    import("../cni/version.ts"),
  ]);
  return writeTextAndExit(errorReply(new PluginError("environment-invalid", message), NEWEST_VERSION));
}

function isPlugin(part: Part): part is PluginPart {
  switch (part) {
    case "node":
    case "controllers":
    case "operator":
    case "sidecar":
    case "console":
    case "admin":
      return false;
    default:
      return true;
  }
}

async function runPart(part: Exclude<Part, PluginPart>, args: readonly string[]): Promise<number> {
  const { run } = await loadPart(part);
  try {
    return await run(args);
  } catch (failure) {
    // A stack trace tells its reader nothing that the message does not.
    console.error(`${programNames(identity)[part]}: ${failure instanceof Error ? failure.message : String(failure)}`);
    return 1;
  }
}

function loadPart(part: Exclude<Part, PluginPart>): Promise<{ run(args: readonly string[]): Promise<number> }> {
  switch (part) {
    case "admin":
      return import("./admin.ts");
    case "node":
      return import("./node.ts");
    case "controllers":
      return import("./controllers.ts");
    case "operator":
      return import("./operator.ts");
    case "sidecar":
      return import("./sidecar.ts");
    case "console":
      return import("./console.ts");
  }
}

/** Chosen by the name of the executable, else by the first argument (`bun main.ts NAME …`), else the plugin. */
function chosenPart(invokedAs: string, args: readonly string[]): { part: Part; args: readonly string[] } {
  const invoked = partNamed(invokedAs, identity);
  if (invoked !== undefined) return { part: invoked, args };

  const asked = partNamed(args[0] ?? "", identity);
  return asked === undefined ? { part: "plugin", args } : { part: asked, args: args.slice(1) };
}

/** As `basename()`, without importing node:path, which takes half a millisecond of every call. */
function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
