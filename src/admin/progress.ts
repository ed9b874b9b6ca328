/** How far long work is, on one line of stderr that is overwritten; nothing where stderr is no terminal. */
import type { Context } from "./command.ts";

export interface Progress {
  step(): void;
  /** Takes the line away again. */
  end(): void;
}

/** Short work needs no line. */
const FEWEST = 20;
const ERASE_LINE = "\r\u001b[K";

export function openProgress(
  { showsProgress, stderr }: Pick<Context, "showsProgress" | "stderr">,
  title: string,
  total: number,
): Progress {
  if (!showsProgress || total < FEWEST) return { step: () => {}, end: () => {} };
  let done = 0;
  let shown = -1;
  return {
    step() {
      done += 1;
      const percent = Math.floor((100 * done) / total);
      if (percent === shown) return;
      shown = percent;
      stderr(`${ERASE_LINE}${title}: ${done} of ${total} (${percent} %)`);
    },
    end: () => stderr(ERASE_LINE),
  };
}
