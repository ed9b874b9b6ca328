import { describe, expect, test } from "bun:test";
import { BlockList } from "node:net";
import fc from "fast-check";
import { type Address, addressBits, addressBytes, formatAddress, parseAddress } from "./address.ts";
import { blockCount, blockIndex, blockOf, blockSize, nthAddress, nthBlock, ordinalOf } from "./block.ts";
import { formatMac, parseMac } from "./mac.ts";
import {
  comparePrefixes,
  formatInterfaceAddress,
  formatNetmask,
  formatPrefix,
  hasHostBits,
  isSamePrefix,
  lastAddress,
  type Prefix,
  parseInterfaceAddress,
  parsePrefix,
  parsePrefixOrAddress,
  prefixAround,
  prefixContains,
  prefixCovers,
  prefixesOverlap,
  prefixSize,
  singlePrefix,
} from "./prefix.ts";
import {
  formatRange,
  parseRange,
  rangeBetween,
  rangeContains,
  rangeOfPrefix,
  rangeSize,
  rangesOverlap,
} from "./range.ts";

const anyAddress: fc.Arbitrary<Address> = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((value): Address => ({ family: 4, value })),
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).map((value): Address => ({ family: 6, value })),
);

const anyPrefix: fc.Arbitrary<Prefix> = fc
  .tuple(anyAddress, fc.nat(128))
  .map(([address, length]) => prefixAround(address, Math.min(length, addressBits(address.family))));

/** An address of the prefix or close to it, so that both results occur. */
const prefixAndAddress = fc
  .tuple(anyPrefix, anyAddress, fc.boolean())
  .map(([prefix, other, near]): [Prefix, Address] => {
    if (!near) return [prefix, other];
    const { family, value } = prefix.network;
    return [prefix, { family, value: value | (other.value & (prefixSize(prefix) - 1n)) }];
  });

const bitsOf = (address: Address): string =>
  Array.from(addressBytes(address), (byte) => byte.toString(2).padStart(8, "0")).join("");

function prefix(text: string): Prefix {
  const read = parsePrefix(text);
  if (!read) throw new Error(`${text} is not a prefix`);
  return read;
}

function address(text: string): Address {
  const read = parseAddress(text);
  if (!read) throw new Error(`${text} is not an address`);
  return read;
}

describe("parsePrefix()", () => {
  test("is the inverse of formatPrefix()", () => {
    fc.assert(fc.property(anyPrefix, (value) => expect(parsePrefix(formatPrefix(value))).toEqual(value)));
  });

  test.each([
    "",
    "10.0.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/-1",
    "10.0.0.0/1e1",
    "10.0.0.0/8.0",
    "10.0.0.0/8 ",
    "10.0.0.0/0x8",
    "10.0.0.0/NaN",
    "10.0.0.0/+8",
    "10.0.0.0/8/8",
    "::/129",
    "/8",
    "10.0.0.1/8",
    "fd00::1/64",
  ])("refuses %p", (text) => {
    expect(parsePrefix(text)).toBeUndefined();
  });
});

describe("parseInterfaceAddress()", () => {
  test("keeps the host bits and reports them", () => {
    const read = parseInterfaceAddress("10.0.0.5/26");

    expect(read && [formatInterfaceAddress(read), hasHostBits(read)]).toEqual(["10.0.0.5/26", true]);
  });
});

describe("parsePrefixOrAddress()", () => {
  test.each([
    ["10.0.0.1", "10.0.0.1/32"],
    ["fd00::1", "fd00::1/128"],
    ["10.0.0.0/8", "10.0.0.0/8"],
  ])("reads %s as %s", (text, expected) => {
    const read = parsePrefixOrAddress(text);

    expect(read && formatPrefix(read)).toBe(expected);
  });
});

describe("prefixContains()", () => {
  test("returns the same as a comparison of the leading bits as text", () => {
    fc.assert(
      fc.property(prefixAndAddress, ([outer, inner]) => {
        const sameBits = bitsOf(inner).startsWith(bitsOf(outer.network).slice(0, outer.length));
        expect(prefixContains(outer, inner)).toBe(outer.network.family === inner.family && sameBits);
      }),
    );
  });

  test("returns the same as the platform's block list", () => {
    fc.assert(
      fc.property(prefixAndAddress, ([outer, inner]) => {
        // The block list unmaps IPv4-mapped addresses; the plain ones are what is compared.
        if (outer.network.family !== inner.family || inner.value >> 32n === 0xffffn) return;
        const list = new BlockList();
        const family = inner.family === 4 ? "ipv4" : "ipv6";
        list.addSubnet(formatAddress(outer.network), outer.length, family);
        expect(prefixContains(outer, inner)).toBe(list.check(formatAddress(inner), family));
      }),
      { numRuns: 200 },
    );
  });
});

describe("prefixesOverlap()", () => {
  test("is true exactly if the ranges of the two overlap", () => {
    const near = fc
      .tuple(prefixAndAddress, fc.nat(128))
      .map(([[outer, inner], length]): [Prefix, Prefix] => [
        outer,
        prefixAround(inner, Math.min(length, addressBits(inner.family))),
      ]);
    fc.assert(
      fc.property(near, ([left, right]) => {
        expect(prefixesOverlap(left, right)).toBe(rangesOverlap(rangeOfPrefix(left), rangeOfPrefix(right)));
        expect(prefixCovers(left, right)).toBe(
          rangeContains(rangeOfPrefix(left), right.network) && rangeContains(rangeOfPrefix(left), lastAddress(right)),
        );
      }),
    );
  });
});

describe("comparePrefixes()", () => {
  test("sorts IPv4 first, then by network, then by length", () => {
    const sorted = ["10.0.0.0/8", "10.0.0.0/16", "10.1.0.0/16", "::/0", "fd00::/8"].map(prefix);

    expect([...sorted].reverse().sort(comparePrefixes)).toEqual(sorted);
    expect(isSamePrefix(prefix("10.0.0.0/8"), prefix("10.0.0.0/16"))).toBe(false);
  });
});

describe("formatNetmask()", () => {
  test.each([
    [4, 0, "0.0.0.0"],
    [4, 26, "255.255.255.192"],
    [4, 32, "255.255.255.255"],
    [6, 64, "ffff:ffff:ffff:ffff::"],
  ] as const)("of IPv%d /%d is %s", (family, length, expected) => {
    expect(formatNetmask(family, length)).toBe(expected);
  });
});

describe("nthAddress()", () => {
  test("is reversed by ordinalOf()", () => {
    fc.assert(
      fc.property(anyPrefix, fc.nat(5000), (block, number) => {
        const found = nthAddress(block, number);
        expect(found !== undefined).toBe(BigInt(number) < prefixSize(block));
        if (found) expect(ordinalOf(block, found)).toBe(number);
      }),
    );
  });

  test("returns undefined outside the block", () => {
    const block = prefix("10.0.0.64/26");

    expect(nthAddress(block, -1)).toBeUndefined();
    expect(nthAddress(block, blockSize(block))).toBeUndefined();
    expect(ordinalOf(block, address("10.0.0.63"))).toBeUndefined();
    expect(ordinalOf(block, address("::a00:40"))).toBeUndefined();
    expect(ordinalOf(singlePrefix(address("fd00::1")), address("fd00::1"))).toBe(0);
    expect(ordinalOf(prefix("::/0"), address("fd00::"))).toBeUndefined();
  });
});

describe("nthBlock()", () => {
  test("divides a pool into consecutive blocks", () => {
    const pool = prefix("10.0.0.0/24");
    const blocks = [0n, 1n, 2n, 3n, 4n, -1n].map((index) => nthBlock(pool, 26, index));

    expect(blocks.map((block) => block && formatPrefix(block))).toEqual([
      "10.0.0.0/26",
      "10.0.0.64/26",
      "10.0.0.128/26",
      "10.0.0.192/26",
      undefined,
      undefined,
    ]);
    expect(blockCount(pool, 26)).toBe(4n);
    expect(blockCount(pool, 20)).toBe(0n);
    expect(blockCount(prefix("fd00::/32"), 122)).toBe(1n << 90n);
  });

  test("returns blocks with the right index, network and addresses", () => {
    const sample = fc.record({ pool: anyPrefix, extra: fc.nat(60), at: fc.bigInt(0n, (1n << 128n) - 1n) });
    fc.assert(
      fc.property(sample, ({ pool, extra, at }) => {
        const length = Math.min(pool.length + extra, addressBits(pool.network.family));
        const index = at % blockCount(pool, length);
        const block = nthBlock(pool, length, index);
        if (!block) throw new Error("the index is below the count");
        expect(prefixCovers(pool, block)).toBe(true);
        expect(blockIndex(pool, block)).toBe(index);
        expect(blockOf(lastAddress(block), length)).toEqual(block);
        expect(block.network.value).toBe(pool.network.value + index * prefixSize(block));
      }),
    );
  });

  test("returns undefined for a block of another pool", () => {
    expect(blockIndex(prefix("10.0.0.0/24"), prefix("10.0.1.0/26"))).toBeUndefined();
  });
});

describe("parseRange()", () => {
  test("reads what formatRange() prints", () => {
    const range = parseRange("10.0.0.5-10.0.0.20");

    expect(range && [formatRange(range), rangeSize(range)]).toEqual(["10.0.0.5-10.0.0.20", 16n]);
  });

  test.each(["10.0.0.5", "10.0.0.5-", "10.0.0.5-10.0.0.4", "10.0.0.5-::1", "10.0.0.1-10.0.0.2-10.0.0.3"])(
    "refuses %p",
    (text) => {
      expect(parseRange(text)).toBeUndefined();
    },
  );
});

describe("rangeBetween()", () => {
  test("refuses ends of two families and ends in the wrong order", () => {
    expect(rangeBetween(address("10.0.0.1"), address("::1"))).toBeUndefined();
    expect(rangeBetween(address("::2"), address("::1"))).toBeUndefined();
    expect(rangeBetween(address("::1"), address("::1"))).toBeDefined();
  });
});

describe("parseMac()", () => {
  test("reads what formatMac() prints", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 6, maxLength: 6 }), (bytes) =>
        expect([...(parseMac(formatMac(bytes)) ?? [])]).toEqual([...bytes]),
      ),
    );
  });

  test.each(["", "02:42:ac:11:00", "02:42:ac:11:00:02:03", "2:42:ac:11:0:2", "0g:42:ac:11:00:02", "0242ac110002"])(
    "refuses %p",
    (text) => {
      expect(parseMac(text)).toBeUndefined();
    },
  );
});
