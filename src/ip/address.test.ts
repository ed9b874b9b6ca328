import { describe, expect, test } from "bun:test";
import { isIP } from "node:net";
import fc from "fast-check";
import {
  type Address,
  addressBits,
  addressBytes,
  addressFromBytes,
  addressOf,
  compareAddresses,
  formatAddress,
  isSameAddress,
  parseAddress,
  stepAddress,
  unmapAddress,
} from "./address.ts";

const anyAddress: fc.Arbitrary<Address> = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((value): Address => ({ family: 4, value })),
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).map((value): Address => ({ family: 6, value })),
  // Many zero groups, for the rules of "::".
  fc
    .array(fc.constantFrom(0n, 0n, 0n, 1n, 0xffffn, 0xa0n), { minLength: 8, maxLength: 8 })
    .map((groups): Address => ({ family: 6, value: groups.reduce<bigint>((sum, group) => (sum << 16n) | group, 0n) })),
);

/** The URL parser is an independent implementation of RFC 5952, without the dotted tail. */
function oracleText(address: Address): string {
  if (address.family === 4) return new URL(`http://${address.value}/`).hostname;
  const groups = address.value.toString(16).padStart(32, "0").match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}

describe("parseAddress()", () => {
  const good: [string, string][] = [
    ["0.0.0.0", "0.0.0.0"],
    ["255.255.255.255", "255.255.255.255"],
    ["::", "::"],
    ["::1", "::1"],
    ["FD00:0:0::00A1", "fd00::a1"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:0:0:2:3:0:0:4", "1::2:3:0:0:4"],
    ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"],
    ["1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"],
    ["::ffff:10.0.0.1", "::ffff:10.0.0.1"],
    ["::ffff:a00:1", "::ffff:10.0.0.1"],
    ["64:ff9b::10.0.0.1", "64:ff9b::a00:1"],
  ];
  test.each(good)("reads %s and prints %s", (text, canonical) => {
    const address = parseAddress(text);

    expect(address && formatAddress(address)).toBe(canonical);
  });

  const bad = [
    ..."| |10|10.0.0|10.0.0.0.0|10.0.0.256|010.0.0.1|10.0.0.01|0x0a.0.0.1|10.0.0.1 | 10.0.0.1|10.0.0.1/32".split("|"),
    ..."fe80::1%eth0|:|:::|1::2::3|1:2:3:4:5:6:7|1:2:3:4:5:6:7:8:9|::12345|g::|1:2:3:4:5:6:7:8::|[::1]".split("|"),
    ..."::1.2.3|1.2.3.4::|::1.2.3.4:5|:1::2|1::2:|1:2:3:4:5:6:7:1.2.3.4|::ffff:010.0.0.1|1.2.3.4::1".split("|"),
  ];
  test.each(bad)("refuses %p", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test("accepts exactly what the platform's own parser accepts, except zones", () => {
    const alphabet = fc.constantFrom(..."0123456789afF:::...x".split(""));
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 20 }), (letters) => {
        const text = letters.join("");
        expect(parseAddress(text)?.family ?? 0).toBe(isIP(text) as 0 | 4 | 6);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("formatAddress()", () => {
  test("is reversed by parseAddress()", () => {
    fc.assert(fc.property(anyAddress, (address) => expect(parseAddress(formatAddress(address))).toEqual(address)));
  });

  test("prints what an independent RFC 5952 printer prints", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        if (address.family === 6 && address.value >> 32n === 0xffffn) return;
        expect(formatAddress(address)).toBe(oracleText(address));
      }),
    );
  });
});

describe("addressBytes()", () => {
  test("is reversed by addressFromBytes(), at any offset in a buffer", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        const bytes = addressBytes(address);
        const within = new Uint8Array(40);
        within.set(bytes, 3);
        expect(bytes.length * 8).toBe(addressBits(address.family));
        expect(addressFromBytes(within.subarray(3, 3 + bytes.length))).toEqual(address);
      }),
    );
  });

  test("is in network order", () => {
    expect([...addressBytes({ family: 4, value: 0x0a000102n })]).toEqual([10, 0, 1, 2]);
  });

  test("returns undefined for any other length", () => {
    expect(addressFromBytes(new Uint8Array(5))).toBeUndefined();
  });
});

describe("compareAddresses()", () => {
  test("orders by family, then as the bytes do", () => {
    fc.assert(
      fc.property(anyAddress, anyAddress, (left, right) => {
        const expected =
          left.family === right.family
            ? Buffer.compare(addressBytes(left), addressBytes(right))
            : left.family - right.family;
        expect(Math.sign(compareAddresses(left, right))).toBe(Math.sign(expected));
        expect(isSameAddress(left, right)).toBe(expected === 0);
      }),
    );
  });
});

describe("stepAddress()", () => {
  test("stops at both ends of the family", () => {
    const last = { family: 4, value: (1n << 32n) - 1n } as const;

    expect(stepAddress(last, 1n)).toBeUndefined();
    expect(stepAddress({ family: 6, value: 0n }, -1n)).toBeUndefined();
    expect(stepAddress(last, -1n)).toEqual({ family: 4, value: last.value - 1n });
    expect(addressOf(6, last.value + 1n)).toEqual({ family: 6, value: 1n << 32n });
  });
});

describe("unmapAddress()", () => {
  test.each([
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["10.0.0.1", "10.0.0.1"],
    ["::fffe:10.0.0.1", "::fffe:a00:1"],
    ["::10.0.0.1", "::a00:1"],
  ])("turns %s into %s", (text, expected) => {
    const address = parseAddress(text);

    expect(address && formatAddress(unmapAddress(address))).toBe(expected);
  });
});
