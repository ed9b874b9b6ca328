import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Prefix, parseInterfaceAddress, parsePrefix, prefixAround } from "../../ip/prefix.ts";
import { affinityKey, blockKey, borrowedKey, handleKey } from "../../model/keys.ts";
import { type KindMapping, mappingOf } from "./kind-mapping.ts";
import { labelValue, objectName } from "./object-names.ts";
import { productMapping } from "./product-mapping.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const MAPPINGS: readonly KindMapping[] = productMapping(() => "");
const RUNS = { numRuns: 2_000 };

const cidrs: fc.Arbitrary<Prefix> = fc
  .oneof(
    fc.tuple(fc.ipV4(), fc.integer({ min: 20, max: 32 })),
    fc.tuple(fc.ipV6(), fc.integer({ min: 112, max: 128 })),
    // Short forms of addresses, whose separators stand beside each other.
    fc.tuple(fc.constantFrom("::", "::1:0", "1::", "1::1", "1:0:0:1::", "1:1::", "1:1:0:0:1::"), fc.constant(112)),
  )
  .map(([text, length]) => {
    const given = parseInterfaceAddress(`${text}/${length}`);
    if (given === undefined) throw new Error(`not an address: ${text}/${length}`);
    return prefixAround(given.address, length);
  });

/** Names of nodes are like names of objects; those of other programs' records may be anything. */
const nodes = fc.oneof(
  fc.constantFrom("a", "a-1", "a-borrowed", "a.b", "a-10"),
  fc.stringMatching(/^[a-z0-9.-]{1,70}$/),
);
const handles = fc.oneof(fc.string({ minLength: 1, maxLength: 300 }), fc.stringMatching(/^[a-zA-Z0-9._-]{1,80}$/));

const keys = fc.oneof(
  cidrs.map(blockKey),
  fc.tuple(nodes, cidrs).map(([node, cidr]) => affinityKey(node, cidr)),
  fc.tuple(nodes, cidrs).map(([node, cidr]) => borrowedKey(node, cidr)),
  handles.map(handleKey),
);

describe("names of objects", () => {
  test("are valid, and two records never have one name", () => {
    fc.assert(
      fc.property(fc.array(keys, { minLength: 2, maxLength: 12 }), (all) => {
        const paths = new Map<string, string>();
        for (const key of all) {
          const path = mappingOf(MAPPINGS, key).path(key);
          if (path === undefined) throw new Error(`no path for ${key}`);
          const name = path.split("/").at(-1) ?? "";
          expect([key, name.length <= 253 && SUBDOMAIN.test(name)]).toEqual([key, true]);
          expect([path, paths.get(path) ?? key]).toEqual([path, key]);
          paths.set(path, key);
        }
      }),
      RUNS,
    );
  });

  test("of blocks of two nodes differ, although one name begins with the other", () => {
    const [one, another] = [parsePrefix("1:1:0:0:1::/122"), parsePrefix("1:0:0:1::/122")];
    if (one === undefined || another === undefined) throw new Error("not prefixes");
    const pathOf = (key: string) => mappingOf(MAPPINGS, key).path(key);

    expect(pathOf(affinityKey("a", one))).not.toBe(pathOf(affinityKey("a-1", another)));
  });

  test("of any texts are valid, as are values of labels, and differ if the texts differ", () => {
    fc.assert(
      fc.property(handles, handles, (one, another) => {
        expect(objectName(one)).toMatch(SUBDOMAIN);
        expect(objectName(one).length).toBeLessThanOrEqual(253);
        expect(labelValue(one)).toMatch(LABEL_VALUE);
        expect(labelValue(one).length).toBeLessThanOrEqual(63);
        if (one !== another) {
          expect(objectName(one)).not.toBe(objectName(another));
          expect(labelValue(one)).not.toBe(labelValue(another));
        }
      }),
      RUNS,
    );
  });
});
