/** Shows the progress of long work on one line of stderr that is overwritten; nothing if stderr is not a terminal. */

import type { Call, Terminal } from "../main/context.ts";

export interface Progress {
  step(): void;
  /** Erases the line; this happens automatically if the command is interrupted. */
  end(): void;
}

/** Shorter work does not need a progress line. */
const MINIMUM_STEPS = 20;
const ERASE_LINE = "\r\u001b[K";

export function openProgress(
  { showsProgress, stderr, signal }: Pick<Call, "signal"> & Pick<Terminal, "showsProgress" | "stderr">,
  title: string,
  total: number,
): Progress {
  if (!showsProgress || total < MINIMUM_STEPS) return { step: () => {}, end: () => {} };
  let done = 0;
  let shown = -1;
  const erase = () => stderr(ERASE_LINE);
  signal.addEventListener("abort", erase, { once: true });
  return {
    step() {
      done += 1;
      const percent = Math.floor((100 * done) / total);
      if (percent === shown) return;
      shown = percent;
      stderr(`${ERASE_LINE}${title}: ${done} of ${total} (${percent} %)`);
    },
    end() {
      signal.removeEventListener("abort", erase);
      erase();
    },
  };
}
