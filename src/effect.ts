/**
 * Every change that ADD, DEL and GC make to the world passes through here by
 * name, so that a test build can end the process right before and right after
 * each (docs/decisions/crash-points.md). In the shipped build `FAULTS` is
 * `false` at build time, and nothing of it is left.
 */
declare const FAULTS: boolean | undefined;

let visit: ((point: string) => void) | undefined;

/** Sets what happens at each point; without effect in the shipped build. */
export function onCrashPoint(happens: (point: string) => void): void {
  if (typeof FAULTS !== "undefined" && FAULTS) visit = happens;
}

/** `work` is synchronous; see `effectOf`. */
export function effect<Value>(name: string, work: () => Value): Value {
  if (typeof FAULTS === "undefined" || !FAULTS) return work();
  visit?.(`before ${name}`);
  const value = work();
  visit?.(`after ${name}`);
  return value;
}

export async function effectOf<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  if (typeof FAULTS === "undefined" || !FAULTS) return work();
  visit?.(`before ${name}`);
  const value = await work();
  visit?.(`after ${name}`);
  return value;
}
