/**
 * What does the work of a call, behind one door: `main.ts` and what it needs to
 * answer or to hand over are compiled apart from it (scripts/compile.ts), so
 * that a call which needs none of this loads one small piece.
 */
import type { ReadSoFar } from "../linux/standard-streams.ts";
import { COMPOSERS } from "./composers.ts";
import { faceOf } from "./faces.ts";
import type { PluginPart } from "./programs.ts";

export { interruptedAnswer } from "./interrupted.ts";

declare const FAULTS: boolean | undefined;

/** Does the call in this process, and ends with it. */
export async function runInProcess(part: PluginPart, stdin: ReadSoFar | undefined): Promise<never> {
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const { ownProcess, runPlugin } = await import("./process.ts");
  return runPlugin(async () => (await COMPOSERS[part]()).compose(faceOf(part), ownProcess()), stdin);
}

export async function runConnectionTest(): Promise<never> {
  const [{ connectionTest }, { endProcess }] = await Promise.all([
    import("./connection-test.ts"),
    import("./process.ts"),
  ]);
  return endProcess(await connectionTest());
}

export async function runAdmin(args: readonly string[]): Promise<number> {
  return (await import("./admin.ts")).run(args);
}

export async function runNode(args: readonly string[]): Promise<number> {
  return (await import("./node.ts")).run(args);
}
