/**
 * Compares ways to read a block with 64-bit sequence numbers, for each block size.
 * `make bench BENCH=block-codec`. Decision: docs/decisions/block-codec.md.
 */
import * as v from "valibot";
import { nthAddress } from "../src/ip/block.ts";
import { parsePrefix } from "../src/ip/prefix.ts";
import { type IPAMBlock, readBlock, readBlockObject, writeBlock } from "../src/model/ipam-block.ts";
import { quoteSequenceNumbers } from "../src/model/sequence-numbers.ts";

function sampleBlock(cidrText: string): IPAMBlock {
  const cidr = parsePrefix(cidrText);
  if (!cidr) throw new Error("the sample is wrong");
  const ordinals: number[] = [];
  while (nthAddress(cidr, ordinals.length)) ordinals.push(ordinals.length);
  const used = ordinals.slice(0, (ordinals.length * 3) / 4);
  return {
    cidr,
    affinity: "host:node-0001",
    allocations: ordinals.map((ordinal) => (ordinal < used.length ? ordinal : undefined)),
    unallocated: ordinals.slice(used.length),
    attributes: used.map((ordinal) => ({
      handleId: `k8s-pod-network.${ordinal.toString(16).padStart(64, "0")}`,
      secondary: {
        node: "node-0001",
        pod: `web-${ordinal}`,
        namespace: "shop",
        timestamp: "2026-01-01 00:00:00 +0000 UTC",
      },
    })),
    sequenceNumber: 1723456789012345679n,
    sequenceNumberForAllocation: Object.fromEntries(
      used.map((ordinal) => [ordinal, 1723456789012345000n + BigInt(ordinal)]),
    ),
    deleted: false,
  };
}

const blockSchema = v.object({
  cidr: v.string(),
  affinity: v.nullable(v.string()),
  allocations: v.array(v.nullable(v.pipe(v.number(), v.integer()))),
  unallocated: v.array(v.pipe(v.number(), v.integer())),
  attributes: v.array(v.object({ handle_id: v.nullable(v.string()), secondary: v.record(v.string(), v.string()) })),
  sequenceNumber: v.pipe(
    v.string(),
    v.transform((digits) => BigInt(digits)),
  ),
  sequenceNumberForAllocation: v.record(
    v.string(),
    v.pipe(
      v.string(),
      v.transform((digits) => BigInt(digits)),
    ),
  ),
  deleted: v.boolean(),
});

/** The reviver gets the digits as written; it is called for every value of the text. */
function parseWithSource(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && !Number.isSafeInteger(value) ? (context?.source ?? value) : value,
  );
}

const WAYS: readonly [string, (text: string) => unknown][] = [
  ["quoted in the text, read by hand (kept)", (text) => readBlock(text, "key")],
  ["reviver with source text, read by hand", (text) => readBlockObject(parseWithSource(text), "key")],
  ["quoted in the text, read by schema", (text) => v.parse(blockSchema, JSON.parse(quoteSequenceNumbers(text)))],
  ["JSON.parse alone, rounding", (text) => JSON.parse(text)],
];

const CIDRS = ["10.0.0.0/26", "10.0.0.0/22"];

function microsecondsPerRun(run: () => unknown, runs: number): number {
  const start = Bun.nanoseconds();
  for (let count = 0; count < runs; count += 1) run();
  return (Bun.nanoseconds() - start) / runs / 1000;
}

/** The first read of a process, which is what a plugin does: the median of several processes. */
function coldMicroseconds(way: string, cidr: string): number {
  const figures = Array.from({ length: 9 }, () => {
    const child = Bun.spawnSync([process.execPath, import.meta.path, way, cidr]);
    return Number(child.stdout.toString());
  });
  return figures.sort((left, right) => left - right)[4] ?? Number.NaN;
}

const [, , onlyWay, onlyCidr] = process.argv;
if (onlyWay !== undefined && onlyCidr !== undefined) {
  const text = writeBlock(sampleBlock(onlyCidr));
  const run = WAYS.find(([way]) => way === onlyWay)?.[1];
  console.log(microsecondsPerRun(() => run?.(text), 1));
} else {
  console.log("reading a block, three quarters allocated; µs per read");
  const rows = CIDRS.flatMap((cidr) => {
    const text = writeBlock(sampleBlock(cidr));
    return WAYS.map(([way, run]) => {
      microsecondsPerRun(() => run(text), 300);
      const warm = microsecondsPerRun(() => run(text), 500).toFixed(1);
      return {
        block: cidr,
        bytes: text.length,
        way,
        "first of a process": coldMicroseconds(way, cidr).toFixed(0),
        warm,
      };
    });
  });
  console.table(rows);
}
