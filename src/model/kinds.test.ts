import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { API_VERSION, OPERATOR_API } from "../identity.ts";
import { blockSchema } from "./internal-kinds.ts";
import { readBlock, writeBlock } from "./ipam-block.ts";
import { IPAM_CONFIGURATION_KEY, keysUnder, parseKey } from "./keys.ts";
import { findKind, INTERNAL_KINDS, kindWords, PUBLIC_KINDS, publicKind } from "./kinds.ts";
import { nearestName } from "./nearest-name.ts";
import { defineResource } from "./resource.ts";
import { quoteSequenceNumbers } from "./sequence-numbers.ts";

/** The least a user must write, by kind. */
const SMALLEST: Readonly<Record<string, object>> = {
  IPPool: { cidr: "10.0.0.0/16" },
  IPAddressList: { addresses: ["10.0.0.1"] },
  HostEndpoint: { node: "n", interfaceName: "*" },
  ContainerLabels: { network: "pods", labels: { tier: "a" } },
  BGPPeer: { peerSelector: "has(router)" },
};

describe("PUBLIC_KINDS", () => {
  test("has no name that belongs to two kinds", () => {
    const words = [...PUBLIC_KINDS, ...INTERNAL_KINDS].flatMap(kindWords);

    expect(new Set(words).size).toBe(words.length);
  });

  test.each(PUBLIC_KINDS.map((row) => [row.kind, row] as const))(
    "%s: the smallest document survives decode, write and read",
    (kind, row) => {
      const name = row.codec.onlyName ?? "default";
      const metadata = row.namespaced ? { name, namespace: "ns" } : { name };
      const decoded = row.codec.decode({
        apiVersion: row.codec.apiVersion,
        kind,
        metadata,
        spec: SMALLEST[kind] ?? {},
      });
      if (!decoded.ok) throw new Error(JSON.stringify(decoded.problems));
      const read = row.codec.read(row.codec.write(decoded.value), row.key(metadata));

      expect(read.spec).toEqual(decoded.value.spec);
      expect(row.checkUpdate?.(read, read) ?? []).toEqual([]);
      expect(row.among?.one(read, [read]) ?? []).toEqual([]);
      expect(row.among?.all([read]).get(read) ?? []).toEqual([]);
      expect(row.codec.make(metadata, read.spec)).toMatchObject({ kind, apiVersion: API_VERSION });
    },
  );

  test.each(PUBLIC_KINDS.map((row) => [row.kind, row] as const))("%s has a key that refers to it", (_, row) => {
    const name = { name: "default", namespace: row.namespaced ? "ns" : undefined };
    const key = row.key(name);

    expect(key.startsWith(row.prefix(name.namespace))).toBe(true);
    if (key !== IPAM_CONFIGURATION_KEY)
      expect(parseKey(key)).toMatchObject({ kind: "resource", plural: row.plural, name: "default" });
  });
});

describe("a kind of another API group", () => {
  const sample = defineResource({
    kind: "Sample",
    api: OPERATOR_API,
    namespaced: false,
    spec: v.object({ registry: v.optional(v.string(), "none") }),
    complete: (spec) => spec,
  });
  const kinds = [...PUBLIC_KINDS, publicKind(sample, "samples", [])];
  const document = { apiVersion: "operator.vendor.io/v1", kind: "Sample", metadata: { name: "default" }, spec: {} };

  test("is found and decoded by the same table", () => {
    const decoded = findKind(kinds, "samples")?.codec.decode(document);

    expect(decoded).toEqual({ ok: true, value: { ...document, spec: { registry: "none" } } });
  });

  test("refuses the API version of other kinds, and they refuse its own", () => {
    const foreign = sample.decode({ ...document, apiVersion: API_VERSION });
    const pool = {
      apiVersion: "operator.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: "a" },
      spec: SMALLEST["IPPool"],
    };
    const strayed = findKind(kinds, "IPPool")?.codec.decode(pool);

    expect(foreign).toMatchObject({
      problems: [{ path: "apiVersion", message: 'is not supported; use "operator.vendor.io/v1"' }],
    });
    expect(strayed).toMatchObject({
      problems: [{ path: "apiVersion", message: `is not supported; use "${API_VERSION}"` }],
    });
  });

  test("has its own API version if none is stored, and when it is created", () => {
    const { apiVersion: _, ...without } = document;

    expect(sample.read(JSON.stringify(without), "key").apiVersion).toBe("operator.vendor.io/v1");
    expect(sample.make({ name: "default" }, { registry: "r" }).apiVersion).toBe("operator.vendor.io/v1");
  });

  test("is stored under its own group, in every tree", () => {
    const other = keysUnder("/other", { group: "other.example", version: "v3" });
    const key = (word: string, keys?: typeof other) => findKind(kinds, word)?.key({ name: "default" }, keys);

    expect(key("samples")).toBe("/vendor/resources/v1/operator.vendor.io/samples/default");
    expect(key("samples", other)).toBe("/other/resources/v1/operator.vendor.io/samples/default");
    expect(key("ippools", other)).toBe("/other/resources/v3/other.example/ippools/default");
    expect(key("ipamconfigurations", other)).toBe("/other/ipam/v2/config");
  });
});

describe("INTERNAL_KINDS", () => {
  test("describe what is written", () => {
    const text = `{"cidr":"10.0.0.0/31","affinity":null,"allocations":[0,null],"unallocated":[1],"attributes":[{"handle_id":"h"}],"sequenceNumber":1723456789012345679}`;
    const written: unknown = JSON.parse(quoteSequenceNumbers(writeBlock(readBlock(text, "key"))));

    expect(v.safeParse(blockSchema, written).issues).toBeUndefined();
    expect(INTERNAL_KINDS.every((row) => row.specSchema.type === "object")).toBe(true);
  });
});

describe("findKind()", () => {
  test.each([
    ["IPPool", "IPPool"],
    ["ippools", "IPPool"],
    ["WEP", "WorkloadEndpoint"],
    ["node", "Node"],
  ])("finds %s as %s", (word, kind) => {
    expect(findKind(PUBLIC_KINDS, word)?.kind).toBe(kind);
  });

  test.each(["", "ipamblock", "constructor"])("has no public kind named %p", (word) => {
    expect(findKind(PUBLIC_KINDS, word)).toBeUndefined();
  });
});

describe("nearestName()", () => {
  test.each([
    ["natOutgoign", "natOutgoing"],
    ["NATOUTGOING", "natOutgoing"],
    ["cdir", "cidr"],
    ["blocksize", "blockSize"],
    ["colour", undefined],
  ])("for %s is %p", (word, expected) => {
    expect(nearestName(word, ["cidr", "natOutgoing", "blockSize"])).toBe(expected);
  });

  test.each([
    ["zz", undefined],
    ["b", undefined],
    ["p2", "p1"],
  ])("for the short word %s is %p", (word, expected) => {
    expect(nearestName(word, ["a", "p1"])).toBe(expected);
  });
});
