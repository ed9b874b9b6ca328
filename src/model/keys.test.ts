import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { OPERATOR_API, PRODUCT_API } from "../identity.ts";
import { type Prefix, parsePrefix, prefixAround } from "../ip/prefix.ts";
import {
  ALL_AFFINITIES_PREFIX,
  affinitiesPrefix,
  affinityKey,
  blockKey,
  blocksPrefix,
  HANDLES_PREFIX,
  handleKey,
  handlesPrefix,
  IPAM_CONFIGURATION_KEY,
  type KeyParts,
  keysUnder,
  parseKey,
  ROOT_PREFIX,
  resourceKey,
  resourcesPrefix,
} from "./keys.ts";

function prefix(text: string): Prefix {
  const read = parsePrefix(text);
  if (!read) throw new Error(`test needs a prefix, not ${text}`);
  return read;
}

const V4 = prefix("10.0.0.0/26");
const V6 = prefix("fd80::/122");

describe("keys", () => {
  const table: [string, string, KeyParts][] = [
    [IPAM_CONFIGURATION_KEY, "/vendor/ipam/v2/config", { kind: "ipam-configuration" }],
    [blockKey(V4), "/vendor/ipam/v2/assignment/ipv4/block/10.0.0.0-26", { kind: "block", cidr: V4 }],
    [blockKey(V6), "/vendor/ipam/v2/assignment/ipv6/block/fd80::-122", { kind: "block", cidr: V6 }],
    [
      affinityKey("node1", V4),
      "/vendor/ipam/v2/host/node1/ipv4/block/10.0.0.0-26",
      { kind: "affinity", node: "node1", cidr: V4 },
    ],
    [handleKey("net.cid"), "/vendor/ipam/v2/handle/net.cid", { kind: "handle", handleId: "net.cid" }],
    [handleKey("a/b%2F"), "/vendor/ipam/v2/handle/a%2Fb%252F", { kind: "handle", handleId: "a/b%2F" }],
    [
      resourceKey("ippools", { name: "blue" }),
      "/vendor/resources/v3/vendor.org/ippools/blue",
      { kind: "resource", api: PRODUCT_API, plural: "ippools", name: "blue" },
    ],
    [
      resourceKey("workloadendpoints", { name: "w", namespace: "ns" }),
      "/vendor/resources/v3/vendor.org/workloadendpoints/ns/w",
      { kind: "resource", api: PRODUCT_API, plural: "workloadendpoints", namespace: "ns", name: "w" },
    ],
    [
      resourceKey("installations", { name: "default" }, OPERATOR_API),
      "/vendor/resources/v1/operator.vendor.io/installations/default",
      { kind: "resource", api: OPERATOR_API, plural: "installations", name: "default" },
    ],
  ];
  test.each(table)("%s is as the reference says, and is parsed again", (key, expected, parts) => {
    expect(key).toBe(expected);
    expect(parseKey(key)).toEqual(parts);
    expect(key.startsWith(ROOT_PREFIX)).toBe(true);
  });

  test("have the prefixes that list them", () => {
    expect(blockKey(V6).startsWith(blocksPrefix(6))).toBe(true);
    expect(affinityKey("n", V4).startsWith(affinitiesPrefix("n", 4))).toBe(true);
    expect(affinityKey("n", V6).startsWith(affinitiesPrefix("n"))).toBe(true);
    expect(affinityKey("n2", V4).startsWith(affinitiesPrefix("n"))).toBe(false);
    expect(affinityKey("n", V4).startsWith(ALL_AFFINITIES_PREFIX)).toBe(true);
    expect(handleKey("net.cid").startsWith(handlesPrefix("net."))).toBe(true);
    expect(handleKey("net.cid").startsWith(HANDLES_PREFIX)).toBe(true);
    expect(resourceKey("p", { name: "n", namespace: "a" }).startsWith(resourcesPrefix("p", "a"))).toBe(true);
  });

  test("are different for different names", () => {
    const name = fc.string({
      minLength: 1,
      unit: fc.oneof(fc.constantFrom("/", "%", "2", "F", "5"), fc.string({ minLength: 1, maxLength: 1 })),
    });
    fc.assert(
      fc.property(name, fc.nat(0xffff_ffff), fc.integer({ min: 20, max: 32 }), (text, value, length) => {
        const cidr = prefixAround({ family: 4, value: BigInt(value) }, length);
        expect(parseKey(handleKey(text))).toEqual({ kind: "handle", handleId: text });
        expect(parseKey(affinityKey(text, cidr))).toEqual({ kind: "affinity", node: text, cidr });
        expect(parseKey(resourceKey("nodes", { name: text }))).toEqual({
          kind: "resource",
          api: PRODUCT_API,
          plural: "nodes",
          name: text,
        });
      }),
    );
  });
});

describe("parseKey()", () => {
  test.each([
    "",
    "/other/ipam/v2/config",
    "/vendor/ipam/v2/config/x",
    "/vendor/ipam/v2/handle/",
    "/vendor/ipam/v2/handle/a/b",
    "/vendor/ipam/v2/host/node1",
    "/vendor/ipam/v2/assignment/ipv6/block/10.0.0.0-26",
    "/vendor/ipam/v2/assignment/ipv4/block/10.0.0.1-26",
    "/vendor/resources/v3/vendor.org/ippools",
    "/vendor/resources/v3/vendor.org/ippools/",
    "/vendor/resources/v3/vendor.org/a/b/c/d",
  ])("does not recognize %p", (key) => {
    expect(parseKey(key)).toBeUndefined();
  });
});

describe("keysUnder()", () => {
  const OTHER_API = { group: "other.example", version: "v3" };
  const other = keysUnder("/other", OTHER_API);
  const table: [string, string, KeyParts][] = [
    [other.ipamConfigurationKey, "/other/ipam/v2/config", { kind: "ipam-configuration" }],
    [other.blockKey(V4), "/other/ipam/v2/assignment/ipv4/block/10.0.0.0-26", { kind: "block", cidr: V4 }],
    [
      other.affinityKey("n/1", V6),
      "/other/ipam/v2/host/n%2F1/ipv6/block/fd80::-122",
      { kind: "affinity", node: "n/1", cidr: V6 },
    ],
    [other.handleKey("net.cid"), "/other/ipam/v2/handle/net.cid", { kind: "handle", handleId: "net.cid" }],
    [
      other.resourceKey("ippools", { name: "blue" }),
      "/other/resources/v3/other.example/ippools/blue",
      { kind: "resource", api: OTHER_API, plural: "ippools", name: "blue" },
    ],
    [
      other.resourceKey("workloadendpoints", { name: "w", namespace: "ns" }),
      "/other/resources/v3/other.example/workloadendpoints/ns/w",
      { kind: "resource", api: OTHER_API, plural: "workloadendpoints", namespace: "ns", name: "w" },
    ],
  ];
  test.each(table)("%s is in the tree of the other root, and only there", (key, expected, parts) => {
    expect(key).toBe(expected);
    expect(other.parseKey(key)).toEqual(parts);
    expect(key.startsWith(other.rootPrefix)).toBe(true);
    expect(parseKey(key)).toBeUndefined();
  });

  test("does not accept a key of this product as one of the other", () => {
    for (const key of [IPAM_CONFIGURATION_KEY, blockKey(V4), handleKey("h"), resourceKey("nodes", { name: "n" })]) {
      expect(other.parseKey(key)).toBeUndefined();
    }
  });
});
