/**
 * Addresses as one bigint (src/ip) compared with four 32-bit words, for the work
 * of an ADD: find the pool and the block of an address, its ordinal, and the
 * next address. `make bench BENCH=addresses`. Decision: docs/decisions/addresses-as-bigint.md.
 */
import { type Address, formatAddress, parseAddress } from "../src/ip/address.ts";
import { blockOf, nthAddress, ordinalOf } from "../src/ip/block.ts";
import { type Prefix, parsePrefix, prefixContains } from "../src/ip/prefix.ts";
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../src/ip/text.ts";

/** The other representation: most significant word first; IPv4 uses only the last word. */
interface Words {
  readonly family: 4 | 6;
  readonly words: readonly [number, number, number, number];
}

function parseWords(text: string): Words | undefined {
  const ipv4 = parseIpv4(text);
  if (ipv4 !== undefined) return { family: 4, words: [0, 0, 0, ipv4] };
  const groups = parseIpv6(text);
  if (!groups) return undefined;
  const word = (index: number) => (groups[index] ?? 0) * 65536 + (groups[index + 1] ?? 0);
  return { family: 6, words: [word(0), word(2), word(4), word(6)] };
}

function formatWords({ family, words }: Words): string {
  return family === 4 ? formatIpv4(words[3]) : formatIpv6(words.flatMap((word) => [word >>> 16, word & 0xffff]));
}

function maskWords({ family, words }: Words, length: number): Words {
  const start = family === 4 ? length + 96 : length;
  const mask = (word: number, index: number) => {
    const bits = Math.min(32, Math.max(0, start - index * 32));
    return bits === 0 ? 0 : (word & (0xffff_ffff << (32 - bits))) >>> 0;
  };
  const [first, second, third, fourth] = words;
  return { family, words: [mask(first, 0), mask(second, 1), mask(third, 2), mask(fourth, 3)] };
}

function isSameWords(left: Words, right: Words): boolean {
  return left.words.every((word, index) => word === right.words[index]);
}

function addWords({ family, words: [first, second, third, fourth] }: Words, offset: number): Words {
  const sum = fourth + offset;
  const carry = sum > 0xffff_ffff ? 1 : 0;
  return { family, words: [first, second, (third + carry) >>> 0, sum >>> 0] };
}

const POOLS = { 4: "10.0.0.0/12", 6: "fd00:10::/64" } as const;
const ADDRESSES = { 4: "10.3.7.77", 6: "fd00:10::1:4d" } as const;
const BLOCK_LENGTH = { 4: 26, 6: 122 } as const;
type Family = 4 | 6;

function demand<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the sample is wrong");
  return value;
}

function withBigint(family: Family): string {
  const pool: Prefix = demand(parsePrefix(POOLS[family]));
  const address: Address = demand(parseAddress(ADDRESSES[family]));
  const block = blockOf(address, BLOCK_LENGTH[family]);
  const ordinal = demand(ordinalOf(block, address));
  return prefixContains(pool, address) ? formatAddress(demand(nthAddress(block, ordinal + 1))) : "";
}

function withWords(family: Family): string {
  const [networkText = "", lengthText] = POOLS[family].split("/");
  const network = demand(parseWords(networkText));
  const address = demand(parseWords(ADDRESSES[family]));
  const block = maskWords(address, BLOCK_LENGTH[family]);
  const ordinal = address.words[3] - block.words[3];
  const isInside = isSameWords(maskWords(address, Number(lengthText)), network);
  return isInside ? formatWords(addWords(block, ordinal + 1)) : "";
}

function nanosecondsPerRun(run: () => string, runs: number): number {
  const start = Bun.nanoseconds();
  for (let count = 0; count < runs; count += 1) run();
  return Math.round((Bun.nanoseconds() - start) / runs);
}

const WAYS = { bigint: withBigint, "four words": withWords } as const;

/** The cost for a plugin, which does this once: the median of several processes. */
function coldMicroseconds(way: string, family: Family): number {
  const figures = Array.from({ length: 9 }, () => {
    const child = Bun.spawnSync([process.execPath, import.meta.path, way, `${family}`]);
    return Number(child.stdout.toString()) / 1000;
  });
  return figures.sort((left, right) => left - right)[4] ?? Number.NaN;
}

const [, , onlyWay, onlyFamily] = process.argv;
if (onlyWay !== undefined) {
  const run = onlyWay === "bigint" ? withBigint : withWords;
  console.log(nanosecondsPerRun(() => run(onlyFamily === "4" ? 4 : 6), 1));
} else {
  console.log("parse pool and address, find block and ordinal, print the next address; µs");
  const rows = ([4, 6] as const).flatMap((family) => {
    if (withBigint(family) !== withWords(family)) throw new Error("the two disagree");
    return Object.entries(WAYS).map(([as, run]) => {
      nanosecondsPerRun(() => run(family), 50_000);
      const warm = (nanosecondsPerRun(() => run(family), 200_000) / 1000).toFixed(2);
      return { family: `IPv${family}`, as, "first of a process": coldMicroseconds(as, family).toFixed(0), warm };
    });
  });
  console.table(rows);
}
