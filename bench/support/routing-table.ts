/** The results of the ways between pods as text. Pure. */
import { markdown } from "./policy-table.ts";
import { quantileOf } from "./statistics.ts";

export interface MeasuredPath {
  readonly name: string;
  /** Microseconds. */
  readonly roundTrips: readonly number[];
  /** Gigabits per second, one of each round. */
  readonly throughput: readonly number[];
}

/** Ratios to the first. */
export function pathTable(paths: readonly MeasuredPath[]): string {
  const median = (values: readonly number[]) => quantileOf(values, 0.5);
  const [baseline] = paths;
  const ratio = (values: readonly number[], base: readonly number[] | undefined) =>
    (median(values) / median(base ?? [])).toFixed(2);
  return markdown([
    [
      "pod to pod through VXLAN",
      "round trip, median",
      "p5 to p95",
      "ratio",
      "throughput, median",
      "p5 to p95",
      "ratio",
    ],
    ...paths.map(({ name, roundTrips, throughput }) => [
      name,
      `${median(roundTrips).toFixed(1)} us`,
      `${quantileOf(roundTrips, 0.05).toFixed(1)} to ${quantileOf(roundTrips, 0.95).toFixed(1)}`,
      ratio(roundTrips, baseline?.roundTrips),
      `${median(throughput).toFixed(2)} Gbit/s`,
      `${quantileOf(throughput, 0.05).toFixed(2)} to ${quantileOf(throughput, 0.95).toFixed(2)}`,
      ratio(throughput, baseline?.throughput),
    ]),
  ]);
}
