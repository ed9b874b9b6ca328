import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address, prefix } from "../../../test/support/ip.ts";
import { PluginError } from "../../errors.ts";
import { addressBytes } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { MessageCursor } from "../netlink/message-reader.ts";
import { MessageWriter } from "../netlink/message-writer.ts";
import { type DataType, typeLength, typeNumber, typesOfNumber } from "./data-type.ts";
import type { Expression } from "./expression.ts";
import { containsKey, inRangeOrder, prefixElements, rangeElements } from "./intervals.ts";
import { matchPrefix } from "./match.ts";
import { readChain, readElements, readRule, readSet, readTable } from "./object-reader.ts";
import { commentEntry, encodeUserdata, findComment, findEntry } from "./userdata.ts";
import { concatenate, interfaceValue, portValue } from "./value.ts";
import { MESSAGE } from "./wire.ts";

const TYPES: readonly DataType[] = ["ipv4_addr", "ipv6_addr", "inet_proto", "inet_service", "ifname", "mark"];

describe("typeNumber()", () => {
  test("of up to five fields is decoded to the same fields", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...TYPES), { minLength: 1, maxLength: 5 }), (fields) => {
        expect(typesOfNumber(typeNumber(fields))).toEqual(fields);
      }),
    );
  });

  test("with an unknown type is undefined", () => {
    expect(typesOfNumber(63)).toBeUndefined();
  });
});

describe("concatenate()", () => {
  test("returns a key of the length that the set declares", () => {
    const key = concatenate(interfaceValue("cali1"), addressBytes(address("10.0.0.1")), portValue(80));
    expect(key.length).toBe(typeLength(["ifname", "ipv4_addr", "inet_service"]));
    expect(key.toHex()).toBe("63616c69310000000000000000000000" + "0a000001" + "00500000");
  });
});

describe("interfaceValue()", () => {
  test("has at most fifteen bytes and a zero at its end", () => {
    expect(interfaceValue("a".repeat(40)).toHex()).toBe(`${"61".repeat(15)}00`);
  });
});

const byte = fc.integer({ min: 0, max: 255 });
/** Ranges of keys of one byte, in ascending order. */
const byteRanges = fc.uniqueArray(byte, { maxLength: 12 }).map((ends) => {
  const sorted = ends.toSorted((left, right) => left - right);
  return sorted.flatMap((first, index) => {
    const last = sorted[index + 1];
    return index % 2 === 0 && last !== undefined ? [{ first, last }] : [];
  });
});
const elementsOf = (ranges: readonly { readonly first: number; readonly last: number }[]) =>
  rangeElements(ranges.map(({ first, last }) => ({ first: Uint8Array.of(first), last: Uint8Array.of(last) })));

describe("containsKey()", () => {
  test("finds the keys of all ranges, in any order of their elements", () => {
    fc.assert(
      fc.property(byteRanges, byte, fc.boolean(), (all, key, isReversed) => {
        const elements = elementsOf(all);
        const isFound = containsKey(isReversed ? elements.toReversed() : elements)(Uint8Array.of(key));
        expect(isFound).toBe(all.some(({ first, last }) => first <= key && key <= last));
      }),
    );
  });
});

describe("inRangeOrder()", () => {
  test("lets the end of each range follow its beginning, whatever the order was", () => {
    const shuffled = byteRanges.chain((ranges) => {
      const elements = elementsOf(ranges);
      return fc.tuple(fc.constant(elements), fc.shuffledSubarray(elements, { minLength: elements.length }));
    });
    fc.assert(
      fc.property(shuffled, ([elements, given]) => {
        expect(inRangeOrder(given)).toEqual(elements);
      }),
    );
  });

  test("ends a range before the next one that begins at the same key", () => {
    const elements = elementsOf([
      { first: 1, last: 4 },
      { first: 5, last: 9 },
    ]);
    expect(inRangeOrder(elements.toReversed())).toEqual(elements);
  });
});

describe("rangeElements()", () => {
  test.each([
    ["one key", [5], [5], [{ key: [5] }, { key: [6], interval: "end" }]],
    ["a carry", [1, 0], [1, 255], [{ key: [1, 0] }, { key: [2, 0], interval: "end" }]],
    ["the end of the key space", [255, 0], [255, 255], [{ key: [255, 0], interval: "open" }]],
  ])("ends %s at the next key, or leaves it open", (_name, first, last, expected) => {
    const found = rangeElements([{ first: Uint8Array.from(first), last: Uint8Array.from(last) }]);
    const plain: readonly unknown[] = found.map((element) => ({ ...element, key: [...element.key] }));
    expect(plain).toEqual(expected);
  });

  test("returns one open range for everything", () => {
    expect(prefixElements([prefix("::/0")])).toEqual([{ key: new Uint8Array(16), interval: "open" }]);
  });
});

describe("matchPrefix()", () => {
  test("matches exactly the addresses of the prefix", () => {
    const any = fc.record({
      value: fc.bigInt({ min: 0n, max: 0xffff_ffffn }),
      length: fc.integer({ min: 0, max: 32 }),
    });
    fc.assert(
      fc.property(
        any,
        fc.bigInt({ min: 0n, max: 0xffff_ffffn }),
        fc.integer({ min: 0, max: 32 }),
        (of, other, near) => {
          const bits = BigInt(32 - of.length);
          const network = { family: 4, value: (of.value >> bits) << bits } as const;
          // Half of the candidates differ from the network in only one bit.
          const value = near < 32 ? network.value ^ (1n << BigInt(near)) : other;
          const candidate = { family: 4, value } as const;
          const within = prefixContains({ network, length: of.length }, candidate);
          expect(isMatch(matchPrefix("source", { network, length: of.length }), addressBytes(candidate))).toBe(within);
        },
      ),
    );
  });
});

describe("user data", () => {
  test("contains a comment that can be found, also after another entry", () => {
    const bytes = encodeUserdata([{ type: 9, value: Uint8Array.of(1, 2) }, commentEntry("net/cid/eth0")]);
    expect(findComment(bytes)).toBe("net/cid/eth0");
    expect(findEntry(bytes, 9)).toEqual(Uint8Array.of(1, 2));
  });

  test("contains a long comment cut after a whole character", () => {
    const comment = findComment(encodeUserdata([commentEntry("ü".repeat(100))]));
    expect(comment).toBe("ü".repeat(64));
  });

  test("of arbitrary bytes contains an entry or none", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => findEntry(bytes, 300) === undefined));
  });
});

describe("readRule() and the other readers", () => {
  test("decode or refuse arbitrary attributes, and never crash", () => {
    const types = [MESSAGE.newTable, MESSAGE.newChain, MESSAGE.newRule, MESSAGE.newSet, MESSAGE.newElement];
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 120 }), (type, body) => {
        const writer = new MessageWriter();
        writer.beginMessage(type, 0, 1);
        writer.raw(Uint8Array.of(1, 0, 0, 0));
        writer.raw(body);
        writer.endMessage();
        const message = new MessageCursor(writer.written());
        message.next();
        try {
          for (const read of [readTable, readChain, readRule, readSet, readElements]) read(message);
        } catch (error) {
          expect(error instanceof PluginError || error instanceof RangeError).toBe(true);
        }
      }),
    );
  });
});

/** Executes these instructions as the kernel does, for a packet with this source address. */
function isMatch(expressions: readonly Expression[], source: Uint8Array): boolean {
  let register = new Uint8Array(0);
  for (const expression of expressions) {
    if (expression.kind === "payload") register = Uint8Array.from(source.subarray(0, expression.length));
    else if (expression.kind === "bitwise") register = register.map((byte, at) => byte & (expression.mask[at] ?? 0));
    else if (expression.kind === "compare" && register.toHex() !== expression.value.toHex()) return false;
  }
  return true;
}
