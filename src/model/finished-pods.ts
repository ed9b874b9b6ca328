/**
 * A pod that has ended keeps its record until its sandbox is removed, but its addresses are nobody's: rules that select
 * it must not match them.
 */
import type { Resource } from "./resource.ts";
import { isObject } from "./shape.ts";

export function isFinishedPhase(phase: unknown): boolean {
  return phase === "Failed" || phase === "Succeeded";
}

/** Of an endpoint: its pod has ended. */
export function isFinished({ status }: Pick<Resource, "status">): boolean {
  return isObject(status) && isFinishedPhase(status["phase"]);
}
