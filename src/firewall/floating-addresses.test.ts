import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address } from "../../test/support/ip.ts";
import { API_VERSION } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import type { WorkloadEndpoint, WorkloadEndpointSpec } from "../model/workload-endpoint.ts";
import {
  describeConflict,
  type FloatingAddress,
  type FloatingClaim,
  floatingChanges,
  floatingClaim,
  hairpinSources,
  planFloating,
} from "./floating-addresses.ts";
import { floatingOfElement, floatingRuleset } from "./floating-rules.ts";
import { isFloatingIntact } from "./floating-table.ts";

const endpoint = (spec: WorkloadEndpointSpec): WorkloadEndpoint => ({
  apiVersion: API_VERSION,
  kind: "WorkloadEndpoint",
  metadata: { name: "any", namespace: "shop" },
  spec,
});
const pair = (external: string, internal: string): FloatingAddress => ({
  external: address(external),
  internal: address(internal),
});
const claim = (key: string, ...addresses: readonly FloatingAddress[]): FloatingClaim => ({ key, addresses });
const texts = (addresses: readonly FloatingAddress[]) =>
  addresses.map(({ external, internal }) => `${formatAddress(external)} ${formatAddress(internal)}`);

describe("floatingClaim()", () => {
  const ipNATs = [
    { externalIP: "192.0.2.80", internalIP: "10.0.0.5" },
    { externalIP: "2001:db8::80", internalIP: "fd00::5" },
  ];

  test("has the floating IPs of both families of an endpoint of this node", () => {
    const found = floatingClaim("a", endpoint({ node: "node-1", ipNATs }), "node-1");
    expect(texts(found?.addresses ?? [])).toEqual(["192.0.2.80 10.0.0.5", "2001:db8::80 fd00::5"]);
  });

  test.each([
    ["an endpoint of another node", { node: "node-2", ipNATs }],
    ["an endpoint without floating IPs", { node: "node-1" }],
    ["a pair of two families", { node: "node-1", ipNATs: [{ externalIP: "192.0.2.80", internalIP: "fd00::5" }] }],
  ])("is undefined for %s", (_name, spec) => {
    expect(floatingClaim("a", endpoint(spec), "node-1")).toBeUndefined();
  });
});

describe("planFloating()", () => {
  test("gives an address that two endpoints claim to the one with the lowest key, and reports it", () => {
    const claims = [
      claim("b", pair("192.0.2.80", "10.0.0.6"), pair("192.0.2.81", "10.0.0.6")),
      claim("a", pair("192.0.2.80", "10.0.0.5")),
    ];
    const { addresses, conflicts } = planFloating(claims);
    expect(texts(addresses)).toEqual(["192.0.2.80 10.0.0.5", "192.0.2.81 10.0.0.6"]);
    expect(conflicts.map(describeConflict)).toEqual([
      'Floating IP "192.0.2.80" of endpoint "b" has no effect: it leads to endpoint "a" of this node',
    ]);
  });

  test("does not depend on the order of the claims, and has every claimed address once", () => {
    const some = fc.uniqueArray(
      fc.record({
        key: fc.stringMatching(/^[a-d]{1,2}$/),
        ends: fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
      }),
      { selector: ({ key }) => key },
    );
    fc.assert(
      fc.property(some, fc.func(fc.integer()), (rows, weight) => {
        const claims = rows.map(({ key, ends }, index) =>
          claim(key, ...ends.map((end) => pair(`192.0.2.${end}`, `10.0.0.${index + 1}`))),
        );
        const shuffled = claims.toSorted((left, right) => weight(left.key) - weight(right.key));
        const plan = planFloating(claims);
        expect(planFloating(shuffled)).toEqual(plan);
        expect(new Set(plan.addresses.map(({ external }) => formatAddress(external))).size).toBe(plan.addresses.length);
        expect(plan.addresses.length).toBe(new Set(rows.flatMap(({ ends }) => ends)).size);
        expect(plan.addresses.length + plan.conflicts.length).toBe(rows.flatMap(({ ends }) => ends).length);
      }),
    );
  });
});

describe("floatingChanges()", () => {
  test("leaves what stays, and replaces an address that leads elsewhere", () => {
    const [stays, before, after] = [
      pair("192.0.2.1", "10.0.0.1"),
      pair("192.0.2.2", "10.0.0.1"),
      pair("192.0.2.2", "10.0.0.2"),
    ];
    expect(floatingChanges([stays, before], [after, stays])).toEqual({ removed: [before], added: [after] });
  });
});

describe("hairpinSources()", () => {
  test("has the lowest floating IP of each pod address", () => {
    const addresses = [pair("192.0.2.9", "10.0.0.1"), pair("192.0.2.3", "10.0.0.1"), pair("2001:db8::1", "fd00::1")];
    expect(texts(hairpinSources(addresses))).toEqual(["192.0.2.3 10.0.0.1", "2001:db8::1 fd00::1"]);
  });
});

describe("floatingRuleset()", () => {
  const addresses = [pair("192.0.2.9", "10.0.0.1"), pair("2001:db8::1", "fd00::1")];

  test("has the rules that are counted when the table is checked", () => {
    expect(isFloatingIntact(floatingRuleset(addresses).rules)).toBe(true);
  });

  test("has elements that are read back as the same addresses", () => {
    const read = floatingRuleset(addresses).elements.flatMap(({ set, elements }) =>
      elements.map((element) => floatingOfElement(set.startsWith("external") ? "external" : "hairpin", element)),
    );
    expect(read).toEqual([...addresses, ...addresses]);
  });
});
