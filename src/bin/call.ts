/**
 * One call of a plugin: answered at once if no plugin code is needed, else handed
 * over to the host's node agent if one runs, else done in this process.
 */

import { replyFromDescription } from "../cni/plugin-description.ts";
import type { Reply } from "../cni/reply.ts";
import type { ReadSoFar } from "../linux/standard-streams.ts";
import { type Handed, handOver } from "./hand-over.ts";
import { descriptionOf } from "./plugin-descriptions.ts";
import type { PluginPart } from "./programs.ts";
import { writeBytesAndExit, writeTextAndExit } from "./write-and-exit.ts";

declare const FAULTS: boolean | undefined;

export function runCall(part: PluginPart, args: readonly string[]): Promise<number> {
  const ready = immediateReply(part, args[0] ?? "");
  return ready === undefined ? runHanded(part, args) : writeTextAndExit(ready);
}

function immediateReply(part: PluginPart, option: string): Reply | undefined {
  if (option === "-t" && part === "plugin") return undefined;
  if (option === "-v") return { exitCode: 0, stdout: `${descriptionOf(part).versionLine}\n`, stderr: "" };
  const command = process.env["CNI_COMMAND"] ?? "";
  return command === "" || command === "VERSION" ? replyFromDescription(command, descriptionOf(part)) : undefined;
}

function runHanded(part: PluginPart, args: readonly string[]): Promise<number> {
  if (part === "plugin" && args[0] === "-t") return runConnectionTest();
  const handed = handOver(part);
  return handed instanceof Promise ? handed.then((later) => finish(part, later)) : finish(part, handed);
}

function finish(part: PluginPart, { reply, stdin }: Handed): Promise<number> {
  return reply === undefined ? runInProcess(part, stdin) : writeBytesAndExit(reply);
}

async function runInProcess(part: PluginPart, stdin: ReadSoFar | undefined): Promise<number> {
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const [{ ownProcess, runPlugin }, { PLUGIN_LOADERS }] = await Promise.all([
    import("./process.ts"),
    import("./plugin-loaders.ts"),
  ]);
  return runPlugin(async () => (await PLUGIN_LOADERS[part]()).createPlugin(descriptionOf(part), ownProcess()), stdin);
}

async function runConnectionTest(): Promise<number> {
  const [{ connectionTest }, { endProcess }] = await Promise.all([
    import("./connection-test.ts"),
    import("./process.ts"),
  ]);
  return endProcess(await connectionTest());
}
