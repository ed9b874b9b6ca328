import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { PluginError } from "../errors.ts";
import { formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { clusterInformation } from "./cluster-information.ts";
import { ipAddressList } from "./ip-address-list.ts";
import { ipPool, poolPrefix } from "./ip-pool.ts";
import { ipReservation, reservedPrefixes } from "./ip-reservation.ts";
import { ipamConfiguration } from "./ipam-configuration.ts";
import { node } from "./node.ts";
import { poolAnnouncing } from "./pool-announcement.ts";
import { whyPoolUnusable } from "./pool-checks.ts";
import { profile } from "./profile.ts";
import { readStored } from "./stored.ts";
import {
  readStoredAddressList,
  readStoredConfiguration,
  readStoredNode,
  readStoredPool,
  readStoredReadiness,
  readStoredReservation,
} from "./stored-resources.ts";

const KEY = "/key";

/** What a field may hold, right and wrong, of every type. */
const anything = fc.constantFrom<unknown>(
  ...[undefined, null, true, false, "", "a", 0, 26, 1.5, {}, { a: "b" }, { a: 1 }, []],
  ...[
    ["Workload"],
    ["Other"],
    [1],
    "10.0.0.0/16",
    "10.0.0.1/16",
    "fd00::/64",
    ["10.0.0.1"],
    ["fd00::1", "10.0.0.1"],
    ["x"],
    'rack == "a"',
  ],
);
const spec = (...names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, anything])), { requiredKeys: [] });

interface Pair {
  readonly kind: string;
  readonly record: fc.Arbitrary<object>;
  readonly byHand: (text: string) => unknown;
  readonly bySchema: (text: string) => unknown;
}

const PAIRS: readonly Pair[] = [
  {
    kind: "IPPool",
    record: fc.record({
      kind: fc.constant("IPPool"),
      metadata: fc.constantFrom({ name: "blue" }, { name: "blue", creationTimestamp: "2026-01-02T03:04:05Z" }),
      spec: spec(
        "cidr",
        "blockSize",
        "disabled",
        "natOutgoing",
        "disableBGPExport",
        "nodeSelector",
        "namespaceSelector",
        "allowedUses",
        "cooldownSeconds",
        "unknown",
      ),
    }),
    byHand: (text) => ({ ...readStoredPool(text, KEY), cidr: formatPrefix(readStoredPool(text, KEY).cidr) }),
    bySchema: (text) => {
      const { metadata, spec } = ipPool.read(text, KEY);
      const { cidr, blockSize, disabled, natOutgoing, nodeSelector, namespaceSelector, allowedUses, cooldownSeconds } =
        spec;
      return {
        name: metadata.name,
        cidr,
        blockSize,
        disabled,
        createdAt: metadata.creationTimestamp ?? "",
        wasEdited: false,
        natOutgoing,
        nodeSelector,
        ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
        allowedUses,
        ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
        announcing: poolAnnouncing(spec),
        unusable: whyPoolUnusable(poolPrefix({ spec }), spec),
      };
    },
  },
  {
    kind: "Node",
    record: fc.record({
      kind: fc.constant("Node"),
      // The schema takes a list for an empty map.
      metadata: fc.record(
        { name: fc.constant("n"), labels: anything.filter((value) => !Array.isArray(value)) },
        { requiredKeys: ["name"] },
      ),
    }),
    byHand: (text) => readStoredNode(text, KEY).labels,
    bySchema: (text) => node.read(text, KEY).metadata.labels ?? {},
  },
  {
    kind: "IPReservation",
    record: fc.record({
      kind: fc.constant("IPReservation"),
      metadata: fc.constant({ name: "r" }),
      spec: spec("reservedCIDRs"),
    }),
    byHand: (text) => readStoredReservation(text, KEY),
    bySchema: (text) => reservedPrefixes([ipReservation.read(text, KEY)]),
  },
  {
    kind: "IPAddressList",
    record: fc.record({
      kind: fc.constant("IPAddressList"),
      metadata: fc.constant({ name: "l" }),
      spec: spec("addresses", "namespaceSelector"),
    }),
    byHand: (text) => {
      const { addresses, ...others } = readStoredAddressList(text, KEY);
      return { ...others, addresses: addresses.map(formatAddress) };
    },
    bySchema: (text) => ipAddressList.read(text, KEY).spec,
  },
  {
    kind: "IPAMConfiguration",
    record: spec("strict_affinity", "auto_allocate_blocks", "maxBlocksPerHost", "cooldownSeconds", "longestKeepFor"),
    byHand: (text) => readStoredConfiguration(text, KEY),
    bySchema: (text) => ipamConfiguration.read(text, KEY).spec,
  },
  {
    kind: "ClusterInformation",
    record: fc.record({
      kind: fc.constant("ClusterInformation"),
      metadata: fc.constant({ name: "default" }),
      spec: spec("datastoreReady"),
    }),
    byHand: (text) => readStoredReadiness(text, KEY),
    bySchema: (text) => clusterInformation.read(text, KEY).spec.datastoreReady !== false,
  },
];

describe("readStored()", () => {
  test.each(PAIRS)("reads the same fields of a $kind as its schema", ({ record, byHand, bySchema }) => {
    fc.assert(
      fc.property(record, (value) => {
        const text = JSON.stringify(value);
        const expected = outcomeOf(() => bySchema(text));
        // A field that nobody needs may be wrong: reading by hand does not see it.
        if (expected !== "record-malformed") expect(outcomeOf(() => byHand(text))).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["a number for a text", { spec: { cidr: 1 } }, "spec.cidr"],
    ["a text for a flag", { spec: { cidr: "10.0.0.0/16", disabled: "no" } }, "spec.disabled"],
    ["half a block size", { spec: { cidr: "10.0.0.0/16", blockSize: 1.5 } }, "spec.blockSize"],
    ["a list of anything", { spec: { cidr: "10.0.0.0/16", allowedUses: [1] } }, "spec.allowedUses"],
    ["a text for an object", { spec: "x" }, "spec"],
    ["no network", { spec: { cidr: "10.0.0.1/16" } }, "spec.cidr"],
  ])("refuses %s with its path", (_, value, path) => {
    const failure = thrownBy(() => readStoredPool(JSON.stringify({ metadata: { name: "p" }, ...value }), KEY));

    expect(failure.kind).toBe("record-malformed");
    expect(failure.message).toContain(`"${KEY}": ${path}: `);
  });

  test.each(["", "[", "[]", "1", "null"])("refuses %p, which is not a record", (text) => {
    expect(thrownBy(() => readStored(text, profile.kind, KEY)).kind).toBe("record-malformed");
  });
});

function outcomeOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (failure) {
    if (failure instanceof PluginError) return failure.kind;
    throw failure;
  }
}
