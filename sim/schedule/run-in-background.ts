/** Executes events as they come, for code that waits for more than the scheduler: the order is then not that of the seed. */
import type { Scheduler } from "./scheduler.ts";

export function runInBackground(scheduler: Scheduler): { stop(): void } {
  let isOver = false;
  const run = async () => {
    while (!isOver) {
      if (!(await scheduler.step())) await Bun.sleep(1);
    }
  };
  void run();
  return {
    stop: () => {
      isOver = true;
    },
  };
}
