/**
 * Measures where the time of a call goes. A process prints it in one line on
 * stderr if the variable TRACE (with the product's prefix) is 1:
 *
 *   trace ADD: boot 4.2, decode 1.0, datastore 3.1, kernel 2.4, exit 0.3, all 11.0 ms
 *
 * The node agent logs it for every call.
 */

import { type EnterPhase, startPhaseClock } from "../cni/phase.ts";
import { identity } from "../identity.ts";

/** The time until now counts as `boot`, the start of the process. */
export function tracePhases(): EnterPhase {
  if (process.env[`${identity.environmentPrefix}TRACE`] !== "1") return () => {};
  const boot = performance.now();
  const clock = startPhaseClock();
  process.on("exit", () => {
    const parts = [...new Map([["boot", boot], ...clock.spent()])].map(
      ([phase, milliseconds]) => `${phase} ${milliseconds.toFixed(1)}`,
    );
    console.error(`trace ${process.env["CNI_COMMAND"]}: ${parts.join(", ")}, all ${performance.now().toFixed(1)} ms`);
  });
  return clock.enter;
}
