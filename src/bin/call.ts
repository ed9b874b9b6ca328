/**
 * One call of a plugin: answered at once where no plugin is needed for it,
 * handed over to the host's node agent where one runs, else done in this process.
 */
import type { Answer } from "../cni/answer.ts";
import { faceAnswer } from "../cni/face.ts";
import type { ReadSoFar } from "../linux/standard-streams.ts";
import { endReady, endWritten } from "./end.ts";
import { faceOf } from "./faces.ts";
import { type Handed, handOver } from "./hand-over.ts";
import type { PluginPart } from "./programs.ts";

declare const FAULTS: boolean | undefined;

export function runCall(part: PluginPart, args: readonly string[]): Promise<number> {
  const ready = readyAnswer(part, args[0] ?? "");
  return ready === undefined ? runHanded(part, args) : endReady(ready);
}

function readyAnswer(part: PluginPart, option: string): Answer | undefined {
  if (option === "-t" && part === "plugin") return undefined;
  if (option === "-v") return { exitCode: 0, stdout: `${faceOf(part).versionLine}\n`, stderr: "" };
  const command = process.env["CNI_COMMAND"] ?? "";
  return command === "" || command === "VERSION" ? faceAnswer(command, faceOf(part)) : undefined;
}

function runHanded(part: PluginPart, args: readonly string[]): Promise<number> {
  if (part === "plugin" && args[0] === "-t") return runConnectionTest();
  const handed = handOver(part);
  return handed instanceof Promise ? handed.then((later) => finish(part, later)) : finish(part, handed);
}

function finish(part: PluginPart, { answer, stdin }: Handed): Promise<number> {
  return answer === undefined ? runInProcess(part, stdin) : endWritten(answer);
}

async function runInProcess(part: PluginPart, stdin: ReadSoFar | undefined): Promise<number> {
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const [{ ownProcess, runPlugin }, { COMPOSERS }] = await Promise.all([
    import("./process.ts"),
    import("./composers.ts"),
  ]);
  return runPlugin(async () => (await COMPOSERS[part]()).compose(faceOf(part), ownProcess()), stdin);
}

async function runConnectionTest(): Promise<number> {
  const [{ connectionTest }, { endProcess }] = await Promise.all([
    import("./connection-test.ts"),
    import("./process.ts"),
  ]);
  return endProcess(await connectionTest());
}
