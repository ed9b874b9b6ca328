/** A failure that follows from another one refers to it instead of having a remedy of its own. Pure. */
import type { CheckResult } from "./judge.ts";

/** Each of these also needs the connection of pods between the same nodes. */
const NEEDS_PODS = new Set(["pod to Service", "host to pod", "pod to host port"]);
const PODS = "pod to pod";

export function withCauses(results: readonly CheckResult[]): readonly CheckResult[] {
  const failed = new Set(results.filter(({ title, result }) => title === PODS && result === "failed").map(pathOf));
  return results.map((each) => {
    const isCaused = each.result === "failed" && NEEDS_PODS.has(each.title) && failed.has(pathOf(each));
    return isCaused ? { ...each, remedy: `first fix "${PODS}", ${each.from} to ${each.to}` } : each;
  });
}

function pathOf({ from, to, family }: CheckResult): string {
  return `${from}\n${to}\n${family}`;
}
