/**
 * Where the time of a call goes, told in one line on stderr when the variable
 * TRACE (with the product's prefix) is 1:
 *
 *   trace ADD: boot 4.2, decode 1.0, datastore 3.1, kernel 2.4, exit 0.3, all 11.0 ms
 */
import { identity } from "../identity.ts";
import type { EnterPhase, Phase } from "../plugin/phase.ts";

/** Begins in `decode`: whatever was before is the start of the process. */
export function tracePhases(): EnterPhase {
  if (process.env[`${identity.environmentPrefix}TRACE`] !== "1") return () => {};
  let since = performance.now();
  let current: Phase = "decode";
  const spent = new Map<Phase, number>([["boot", since]]);
  const enter = (next: Phase) => {
    const now = performance.now();
    spent.set(current, (spent.get(current) ?? 0) + now - since);
    current = next;
    since = now;
  };
  process.on("exit", () => {
    enter("exit");
    const parts = [...spent].map(([phase, milliseconds]) => `${phase} ${milliseconds.toFixed(1)}`);
    console.error(`trace ${process.env["CNI_COMMAND"]}: ${parts.join(", ")}, all ${since.toFixed(1)} ms`);
  });
  return enter;
}
