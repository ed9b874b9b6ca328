/** Durations as text: "180s", "1.5m", "1h", and as other programs write them: "15m0s", "1h0m0s". Without the schema library. */
export const DURATION = /^(\d{1,6}(\.\d+)?(s|m|h)|\d{1,6}h\d{1,6}m(\d{1,6}(\.\d+)?s)?|\d{1,6}(h|m)\d{1,6}(\.\d+)?s)$/;
const PART = /(\d+(?:\.\d+)?)(s|m|h)/g;
const MILLISECONDS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

export function isDuration(text: string): boolean {
  return DURATION.test(text);
}

export function millisecondsOf(duration: string): number {
  let sum = 0;
  for (const [, number, unit = ""] of duration.matchAll(PART)) sum += Number(number) * (MILLISECONDS[unit] ?? 0);
  return sum;
}

/** Never 0 unless the duration is. */
export function wholeSecondsOf(duration: string): number {
  return Math.ceil(millisecondsOf(duration) / 1000);
}
