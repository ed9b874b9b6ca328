/**
 * Every change that ADD, DEL and GC make outside the process is wrapped in a named
 * effect, so that a test build can end the process right before and right after
 * each (docs/decisions/crash-points.md). In the shipped build `FAULTS` is
 * `false` at build time, and the compiler removes all of this.
 */
declare const FAULTS: boolean | undefined;

let visit: ((point: string) => void) | undefined;

/** Sets the function that is called at each point; does nothing in the shipped build. */
export function onCrashPoint(callback: (point: string) => void): void {
  if (typeof FAULTS !== "undefined" && FAULTS) visit = callback;
}

/** For synchronous work; `effectOf` is for asynchronous work. */
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

let oneObjectAtATime = false;

/** From now on datastores are opened that commit one object at a time; does nothing in the shipped build. */
export function commitOneObjectAtATime(): void {
  if (typeof FAULTS !== "undefined" && FAULTS) oneObjectAtATime = true;
}

export function commitsOneObjectAtATime(): boolean {
  return oneObjectAtATime;
}
