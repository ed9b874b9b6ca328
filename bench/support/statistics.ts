/** Summary statistics of measurements. Pure. */
export interface Summary {
  readonly median: number;
  readonly p95: number;
  readonly mean: number;
  readonly minimum: number;
}

export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new Error("Cannot summarize: there are no values");
  const sorted = [...values].sort((left, right) => left - right);
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return { median: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), mean, minimum: quantile(sorted, 0) };
}

/** The value below which this share of all values is. */
export function quantileOf(values: readonly number[], share: number): number {
  return quantile(
    [...values].sort((left, right) => left - right),
    share,
  );
}

/** Interpolates linearly between two values. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}
