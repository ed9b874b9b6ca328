/** The time, each second while somebody looks: ages of what is known are words. */
import { signal } from "@preact/signals";

export const now = signal(Date.now());

export function runClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1_000);
}
