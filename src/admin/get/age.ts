const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
] as const;

/** `5d`, `3h`, `10m`, `7s`; empty if unknown. */
export function ageOf(timestamp: string | undefined, now: Date): string {
  const created = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  if (Number.isNaN(created)) return "";
  const seconds = Math.max(0, Math.floor((now.getTime() - created) / 1000));
  const [unit, size] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ["s", 1];
  return `${Math.floor(seconds / size)}${unit}`;
}
