import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { API_VERSION } from "../identity.ts";
import { blockSchema } from "./internal-kinds.ts";
import { readBlock, writeBlock } from "./ipam-block.ts";
import { IPAM_CONFIGURATION_KEY, parseKey } from "./keys.ts";
import { findKind, INTERNAL_KINDS, kindWords, PUBLIC_KINDS } from "./kinds.ts";
import { nearestName } from "./nearest-name.ts";
import { quoteSequenceNumbers } from "./sequence-numbers.ts";

/** The least a user must write, by kind. */
const SMALLEST: Readonly<Record<string, object>> = { IPPool: { cidr: "10.0.0.0/16" } };

describe("PUBLIC_KINDS", () => {
  test("gives no word to two kinds", () => {
    const words = [...PUBLIC_KINDS, ...INTERNAL_KINDS].flatMap(kindWords);

    expect(new Set(words).size).toBe(words.length);
  });

  test.each(PUBLIC_KINDS.map((row) => [row.kind, row] as const))(
    "%s: the smallest document survives decode, write, read and print",
    (kind, row) => {
      const name = row.codec.onlyName ?? "a";
      const metadata = row.namespaced ? { name, namespace: "ns" } : { name };
      const decoded = row.codec.decode({ apiVersion: API_VERSION, kind, metadata, spec: SMALLEST[kind] ?? {} });
      if (!decoded.ok) throw new Error(JSON.stringify(decoded.problems));
      const read = row.codec.read(row.codec.write(decoded.value), row.key(metadata));

      expect(read.spec).toEqual(decoded.value.spec);
      expect(row.columns.map((column) => typeof column.cell(read))).toEqual(row.columns.map(() => "string"));
      expect(row.checkUpdate?.(read, read) ?? []).toEqual([]);
      expect(row.checkAmong?.(read, [read]) ?? []).toEqual([]);
      expect(row.codec.make(metadata, read.spec)).toMatchObject({ kind, apiVersion: API_VERSION });
    },
  );

  test.each(PUBLIC_KINDS.map((row) => [row.kind, row] as const))("%s lies at a key that leads back to it", (_, row) => {
    const name = { name: "default", namespace: row.namespaced ? "ns" : undefined };
    const key = row.key(name);

    expect(key.startsWith(row.prefix(name.namespace))).toBe(true);
    if (key !== IPAM_CONFIGURATION_KEY)
      expect(parseKey(key)).toMatchObject({ kind: "resource", plural: row.plural, name: "default" });
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
  ])("takes %s for %s", (word, kind) => {
    expect(findKind(word)?.kind).toBe(kind);
  });

  test.each(["", "ipamblock", "constructor"])("knows no public kind called %p", (word) => {
    expect(findKind(word)).toBeUndefined();
  });
});

describe("nearestName()", () => {
  test.each([
    ["natOutgoign", "natOutgoing"],
    ["NATOUTGOING", "natOutgoing"],
    ["cdir", "cidr"],
    ["blocksize", "blockSize"],
    ["colour", undefined],
  ])("of %s is %p", (word, expected) => {
    expect(nearestName(word, ["cidr", "natOutgoing", "blockSize"])).toBe(expected);
  });

  test.each([
    ["zz", undefined],
    ["b", undefined],
    ["p2", "p1"],
  ])("of the short word %s is %p", (word, expected) => {
    expect(nearestName(word, ["a", "p1"])).toBe(expected);
  });
});
