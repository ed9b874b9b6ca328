const MILLISECONDS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Of a duration as NodeAgentConfiguration has it: "180s", "1.5m", "1h". */
export function millisecondsOf(duration: string): number {
  const unit = duration.at(-1);
  return Number.parseFloat(duration) * (unit === "m" || unit === "h" ? MILLISECONDS[unit] : MILLISECONDS.s);
}
