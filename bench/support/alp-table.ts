/** The results of the benchmark of application layer policy as text. Pure. */
import { markdown } from "./policy-table.ts";
import type { ProcessMemory } from "./process-memory.ts";
import { quantileOf } from "./statistics.ts";

export interface AlpResult {
  /** Of the policies; empty if nothing is decided. */
  readonly load: string;
  readonly authorizer: string;
  /** Milliseconds of requests one after another, and with several at once. */
  readonly alone: readonly number[];
  readonly atOnce: readonly number[];
  /** Absent if nobody is asked. */
  readonly process?: {
    /** Of the authorizer, per request. */
    readonly cpuMilliseconds: number;
    readonly idle: ProcessMemory;
    /** The largest after a turn. */
    readonly loaded: ProcessMemory;
  };
}

interface TimesPlan {
  /** Of the authorizer that ratios are to. */
  readonly peer: string;
  readonly concurrency: number;
}

/** The first result is the proxy alone: what a decision adds is the difference to it. */
export function alpTimesTable(results: readonly AlpResult[], { peer, concurrency }: TimesPlan): string {
  const [baseline] = results;
  return markdown([
    [
      "policies",
      "authorizer",
      "p50 us",
      "p99 us",
      "added p50",
      "added p99",
      "ratio p50",
      `p50 us, ${concurrency} at once`,
      "p99 us",
      "added p50",
      "CPU us",
    ],
    ...results.map((result) => {
      const ofPeer = results.find(({ authorizer, load }) => authorizer === peer && load === result.load);
      const added = (times: "alone" | "atOnce", share: number, { [times]: values } = result) =>
        quantileOf(values, share) - quantileOf(baseline?.[times] ?? [], share);
      const isBaseline = result === baseline;
      return [
        result.load,
        result.authorizer,
        microseconds(quantileOf(result.alone, 0.5)),
        microseconds(quantileOf(result.alone, 0.99)),
        isBaseline ? "" : microseconds(added("alone", 0.5)),
        isBaseline ? "" : microseconds(added("alone", 0.99)),
        ofPeer === undefined || ofPeer === result ? "" : (added("alone", 0.5) / added("alone", 0.5, ofPeer)).toFixed(2),
        microseconds(quantileOf(result.atOnce, 0.5)),
        microseconds(quantileOf(result.atOnce, 0.99)),
        isBaseline ? "" : microseconds(added("atOnce", 0.5)),
        result.process === undefined ? "" : microseconds(result.process.cpuMilliseconds),
      ];
    }),
  ]);
}

export function alpMemoryTable(results: readonly AlpResult[]): string {
  const cells = ({ residentBytes, proportionalBytes, anonymousBytes }: ProcessMemory) =>
    [residentBytes, proportionalBytes, anonymousBytes].map((bytes) => (bytes / 1_000_000).toFixed(1));
  return markdown([
    [
      "policies",
      "authorizer",
      "idle: resident MB",
      "proportional",
      "anonymous",
      "under load: resident MB",
      "proportional",
      "anonymous",
    ],
    ...results.flatMap(({ load, authorizer, process }) =>
      process === undefined ? [] : [[load, authorizer, ...cells(process.idle), ...cells(process.loaded)]],
    ),
  ]);
}

function microseconds(milliseconds: number): string {
  return (milliseconds * 1_000).toFixed(0);
}
