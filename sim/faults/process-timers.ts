import type { Timers } from "../../src/timers.ts";
import type { SimulatedProcess } from "../schedule/process.ts";

/** The timers of the product's client: on the clock of its process, and never after its death. */
export function timersOf(process: SimulatedProcess): Timers {
  const after: Timers["after"] = (milliseconds, action) =>
    process.scheduler.after(milliseconds, () => process.deliver(action));
  return {
    after,
    timeout: (milliseconds) => {
      const controller = new AbortController();
      const expire = () => controller.abort(Object.assign(new Error("too late"), { name: "TimeoutError" }));
      return { signal: controller.signal, cancel: after(milliseconds, expire) };
    },
  };
}
