/** Whatever changes in whichever order, the pods of each namespace are judged as the datastore said at one moment. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ImitatedTable } from "../../../test/support/imitated-table.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { clusters, LOCAL_NODE } from "../../../test/support/random-cluster.ts";
import { identity } from "../../identity.ts";
import { addressBytes, parseAddress } from "../../ip/address.ts";
import { interfaceValue } from "../../linux/nftables/value.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { parseKey } from "../../model/keys.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import type { EntityRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { SIDECARS, WORKLOAD_MAPS } from "../../policy/render/base-chains.ts";
import type { DesiredTable } from "../../policy/table/desired-table.ts";
import { familyOfMembers } from "../../policy/table/names.ts";
import { tableBatches, wholeTable } from "../../policy/table/table-changes.ts";
import type { KernelTable } from "./kernel-table.ts";
import { TableKeeper } from "./table-keeper.ts";
import { WaitingPolicies } from "./turns.ts";

const TABLE = { family: "inet", name: "policy" } as const;
const RUNS = proofSize({ everyDay: 150, soak: 10_000 });
const NAMESPACES = ["red", "blue"];

/** Mostly what tenants write. */
const TENANTS_KINDS = [
  ...(["networkPolicies", "endpoints", "containerLabels", "networkSets", "profiles", "serviceEndpoints"] as const),
];
const ALL_KINDS = [...TENANTS_KINDS, "globalNetworkPolicies", "hostEndpoints", "globalNetworkSets", "tiers"] as const;
type Kind = (typeof ALL_KINDS)[number];
const kinds: fc.Arbitrary<readonly Kind[]> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<readonly Kind[]>(["networkPolicies"]) },
  { weight: 6, arbitrary: fc.constantFrom(...TENANTS_KINDS).map((kind) => [kind]) },
  { weight: 2, arbitrary: fc.constant<readonly Kind[]>(["networkPolicies", "endpoints"]) },
  { weight: 1, arbitrary: fc.constantFrom(...ALL_KINDS).map((kind) => [kind]) },
);

/** Each with most of the one before, and how many turns follow. */
const histories = fc
  .tuple(
    clusters,
    fc.boolean(),
    fc.array(
      fc.record({
        next: clusters,
        kinds,
        share: fc.double({ min: 0, max: 0.99, noNaN: true }),
        turns: fc.constantFrom(0, 0, 0, 1, 2),
      }),
      { minLength: 1, maxLength: 8 },
    ),
  )
  .map(([cluster, hasGlobals, steps]) => {
    const first = hasGlobals ? cluster : { ...cluster, globalNetworkPolicies: [], hostEndpoints: [] };
    let before: PolicyResources = first;
    return [
      { cluster: first, turns: 0 },
      ...steps.map(({ next, kinds: changed, share, turns }) => {
        before = {
          ...before,
          ...Object.fromEntries(changed.map((kind) => [kind, mixed(before, next, { kind, share })])),
        };
        return { cluster: before, turns };
      }),
    ];
  });

/** Some of the records stay: otherwise nearly every change affects every namespace. */
function mixed(
  before: PolicyResources,
  next: PolicyResources,
  { kind, share }: { readonly kind: Kind; readonly share: number },
): readonly unknown[] {
  if (kind === "networkPolicies") {
    const changing = NAMESPACES[Math.floor(share * NAMESPACES.length)];
    return [
      ...before.networkPolicies.filter(({ metadata }) => metadata.namespace !== changing),
      ...next.networkPolicies.map((policy) => ({ ...policy, metadata: { ...policy.metadata, namespace: changing } })),
    ];
  }
  const old: readonly unknown[] = before[kind] ?? [];
  const now: readonly unknown[] = next[kind] ?? [];
  if (kind !== "endpoints" && kind !== "profiles") return now;
  const changing = Math.floor(share * Math.max(old.length, now.length));
  return [...now.slice(0, changing), ...old.slice(changing)];
}

class Site {
  readonly compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
  readonly kernel = new ImitatedTable();
  readonly keeper: TableKeeper;
  hasTable = false;

  constructor(private readonly waiting: WaitingPolicies) {
    const { compiler, kernel } = this;
    const imitated: KernelTable = {
      adopt: () => undefined,
      replace: (table) => {
        imitated.remove();
        kernel.apply(wholeTable(TABLE, table, ""));
        this.hasTable = true;
      },
      change: (table, delta) => {
        for (const batch of tableBatches(TABLE, table, delta)) kernel.apply(batch);
        return undefined;
      },
      remove: () => {
        kernel.chains.clear();
        kernel.sets.clear();
        this.hasTable = false;
      },
      counts: () => [],
      notice: () => ({ kind: "nothing" }),
      difference: () => undefined,
      elementDifference: () => undefined,
      close: () => {},
    };
    this.keeper = new TableKeeper({ compiler, kernel: imitated, isWanted: () => isWanted(compiler), report: () => {} });
  }

  update(before: PolicyResources, after: PolicyResources): void {
    const changes = changesBetween(before, after);
    this.apply(this.keeper.hasTable ? this.waiting.divide(changes) : changes);
  }

  turn(): void {
    const changes = this.waiting.takeNext();
    if (changes !== undefined) this.apply(changes);
  }

  /** How its pods here are judged; "no table": not at all. */
  view(namespace: string): string {
    return this.hasTable ? viewOf(namespace, this.compiler, this.kernel) : "no table";
  }

  private apply(changes: ReturnType<typeof changesBetween>): void {
    this.keeper.update(changes, (affected) => this.waiting.takeAffected(affected));
  }
}

const LABEL = `${identity.labelPrefix}namespace`;
const pod = (namespace: string, node = LOCAL_NODE, labels: Readonly<Record<string, string>> = {}) =>
  workloadEndpoint.make(
    { name: `${node}-${namespace}`, namespace, labels: { ...labels, [LABEL]: namespace } },
    {
      ...{ node, profiles: [`kns.${namespace}`], ipNetworks: [node === LOCAL_NODE ? "10.0.0.1/32" : "10.0.0.2/32"] },
      interfaceName: `${identity.interfacePrefix}${namespace}`,
    },
  );
const policy = (namespace: string, source: EntityRule = {}) =>
  networkPolicy.make({ name: "policy", namespace }, { tier: "default", ingress: [{ action: "Allow", source }] });
const FIRST: PolicyResources = {
  ...NO_RESOURCES,
  endpoints: [pod("red"), pod("blue")],
  networkPolicies: [policy("red", { selector: "app == 'a'" }), policy("blue")],
};
const DENY = globalNetworkPolicy.make(
  { name: "policy" },
  { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false, ingress: [{ action: "Deny" }] },
);

describe("WaitingPolicies", () => {
  /** The policy of "red" changes, and waits; then this changes. Returns whether "red" waits still. */
  const stillWaits = (change: (before: PolicyResources) => PolicyResources) => {
    const waiting = new WaitingPolicies(
      (namespace) => (namespace === "red" ? 2 : 0),
      () => 0,
    );
    const site = new Site(waiting);
    site.update(NO_RESOURCES, FIRST);
    const second = { ...FIRST, networkPolicies: [policy("red", { selector: "app == 'b'" }), policy("blue")] };
    site.update(FIRST, second);
    expect([waiting.isEmpty, site.view("red")]).toEqual([false, momentOf(FIRST).views.get("red") ?? ""]);
    const third = change(second);
    site.update(second, third);
    expect(site.view("blue")).toBe(momentOf(third).views.get("blue") ?? "");
    expect(site.view("red")).toBe(momentOf(waiting.isEmpty ? third : FIRST).views.get("red") ?? "");
    return !waiting.isEmpty;
  };
  const cases: readonly [string, boolean, (before: PolicyResources) => PolicyResources][] = [
    [
      "a policy of another namespace",
      true,
      (all) => ({
        ...all,
        networkPolicies: [...all.networkPolicies.slice(0, 1), policy("blue", { selector: "app == 'a'" })],
      }),
    ],
    ["another policy of the namespace", true, (all) => ({ ...all, networkPolicies: all.networkPolicies.slice(1) })],
    [
      "a pod that its enforced rules do not select",
      true,
      (all) => ({ ...all, endpoints: [...all.endpoints, pod("red", "there", { app: "b" })] }),
    ],
    [
      "a pod of another namespace",
      true,
      (all) => ({ ...all, endpoints: [...all.endpoints, pod("blue", "there", { app: "a" })] }),
    ],
    [
      "a remote pod that its enforced rules select",
      false,
      (all) => ({ ...all, endpoints: [...all.endpoints, pod("red", "there", { app: "a" })] }),
    ],
    [
      "one of its pods here",
      false,
      (all) => ({ ...all, endpoints: [pod("red", LOCAL_NODE, { app: "c" }), ...all.endpoints.slice(1)] }),
    ],
    ["one of its pods here is gone", false, (all) => ({ ...all, endpoints: all.endpoints.slice(1) })],
    [
      "its profile",
      false,
      (all) => ({ ...all, profiles: [profile.make({ name: "kns.red" }, { ingress: [{ action: "Deny" }] })] }),
    ],
    [
      "the profile of another namespace",
      true,
      (all) => ({ ...all, profiles: [profile.make({ name: "kns.blue" }, { ingress: [{ action: "Deny" }] })] }),
    ],
    ["a policy of the cluster", false, (all) => ({ ...all, globalNetworkPolicies: [DENY] })],
    [
      "a host endpoint",
      false,
      (all) => ({
        ...all,
        hostEndpoints: [hostEndpoint.make({ name: "host" }, { node: LOCAL_NODE, interfaceName: "*" })],
      }),
    ],
  ];
  for (const [title, expected, change] of cases)
    test(`large policies ${expected ? "wait on after" : "take effect together with"} a change of ${title}`, () => {
      expect(stillWaits(change)).toBe(expected);
    });

  const ofCluster = (selector: string) =>
    globalNetworkPolicy.make(
      { name: "policy" },
      {
        ...{ tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false, selector },
        ingress: [{ action: "Deny", source: { selector: "app == 'dns'" } }, { action: "Pass" }],
      },
    );
  const host = hostEndpoint.make({ name: "host" }, { node: LOCAL_NODE, interfaceName: "*" });
  test.each([
    ["do not evaluate, waits on", `${LABEL} == 'blue'`, [], false],
    ["evaluate, takes effect together with it", "all()", [], true],
    ["do not evaluate, but a host may: takes effect together with it", `${LABEL} == 'blue'`, [host], true],
  ])("what waits beside a pod in a set of a policy of the cluster that its pods %s", (_, selector, hosts, isTaken) => {
    const waiting = new WaitingPolicies(
      (namespace) => (namespace === "red" ? 2 : 0),
      () => 0,
    );
    const site = new Site(waiting);
    const first = { ...FIRST, globalNetworkPolicies: [ofCluster(selector)], hostEndpoints: hosts };
    const second = { ...first, networkPolicies: [policy("red", { selector: "app == 'b'" }), policy("blue")] };
    const third = { ...second, endpoints: [...second.endpoints, pod("blue", "there", { app: "dns" })] };
    site.update(NO_RESOURCES, first);
    site.update(first, second);
    expect(waiting.isEmpty).toBe(false);
    site.update(second, third);

    expect(waiting.isEmpty).toBe(isTaken);
    expect(site.view("red")).toBe(momentOf(isTaken ? third : first).views.get("red") ?? "");
    expect(site.view("blue")).toBe(momentOf(third).views.get("blue") ?? "");
  });

  test("each namespace is judged as at one moment of the datastore, which never goes back", () => {
    let waited = 0;
    fc.assert(
      fc.property(histories, fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }), (history, large) => {
        let asked = 0;
        const waiting = new WaitingPolicies(
          () => (large[asked++ % large.length] === true ? 1 + asked : 0),
          () => 0,
        );
        const site = new Site(waiting);
        const moments: Moment[] = [];
        const reached = new Map(NAMESPACES.map((each) => [each, 0]));
        let before = NO_RESOURCES;
        const check = () => {
          for (const namespace of NAMESPACES) {
            const view = site.view(namespace);
            const found = moments.findIndex(
              (moment, index) => index >= (reached.get(namespace) ?? 0) && isOf(moment, namespace, view),
            );
            expect([namespace, found]).not.toEqual([namespace, -1]);
            reached.set(namespace, found);
          }
          expect(addressesIn(site.kernel).difference(addressesOf(before))).toEqual(new Set());
        };
        for (const { cluster, turns } of history) {
          moments.push(momentOf(cluster));
          site.update(before, cluster);
          before = cluster;
          check();
          if (!waiting.isEmpty) waited += 1;
          for (let turn = 0; turn < turns; turn++) {
            site.turn();
            check();
          }
        }
        while (!waiting.isEmpty) site.turn();
        expect(NAMESPACES.filter((each) => !isOf(momentOf(before), each, site.view(each)))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
    // Otherwise nothing was shown.
    expect(waited).toBeGreaterThan(RUNS / 4);
  });
});

interface Moment {
  readonly views: ReadonlyMap<string, string>;
  readonly isTableWanted: boolean;
}

/** How a datastore with these records says that pods are judged. */
function momentOf(cluster: PolicyResources): Moment {
  const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
  compiler.update(changesBetween(NO_RESOURCES, cluster));
  const kernel = new ImitatedTable();
  kernel.apply(wholeTable(TABLE, compiler.table, ""));
  return {
    views: new Map(NAMESPACES.map((each) => [each, viewOf(each, compiler, kernel)])),
    isTableWanted: isWanted(compiler),
  };
}

/** With a table that is not wanted any more what profiles say is enforced, which is stricter. */
function isOf({ views, isTableWanted }: Moment, namespace: string, view: string): boolean {
  return view === views.get(namespace) || (view === "no table" && !isTableWanted);
}

function isWanted({ policyCount, hostEndpointCount }: PolicyCompiler): boolean {
  return policyCount + hostEndpointCount > 0;
}

/** The chains that packets from and to the pods of the namespace reach, and the sets that their rules look up. */
function viewOf(namespace: string, { localEndpoints }: PolicyCompiler, table: DesiredTable): string {
  const owners = new Map<string, string>();
  for (const [key, { interfaceName }] of localEndpoints) {
    const other = owners.get(interfaceName);
    if (other === undefined || key < other) owners.set(interfaceName, key);
  }
  const found = new Map<string, unknown>();
  const visit = (content: unknown) => {
    for (const [, name = ""] of JSON.stringify(content, plain).matchAll(/"(?:chain|set)":"([^"]+)"/g)) {
      if (found.has(name) || name === SIDECARS) continue;
      const parts = table.chains.get(name)?.rules.map(({ expressions }) => expressions);
      const elements = Array.from(table.sets.get(name)?.elements.keys() ?? []).sort();
      found.set(name, parts ?? elements);
      if (parts !== undefined) visit(parts);
    }
  };
  for (const [interfaceName, key] of owners) {
    const parts = parseKey(key);
    if (parts?.kind !== "resource" || parts.namespace !== namespace) continue;
    for (const { name } of WORKLOAD_MAPS) {
      const elements = [...(table.sets.get(name)?.elements.values() ?? [])];
      const own = elements.filter(({ key: bytes }) => bytes.toHex() === interfaceValue(interfaceName).toHex());
      found.set(
        `${name} ${interfaceName}`,
        own.map(({ data }) => data),
      );
      visit(own.map(({ data }) => data));
    }
  }
  return JSON.stringify(
    [...found].sort(([left], [right]) => (left < right ? -1 : 1)),
    plain,
  );
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Uint8Array ? value.toHex() : value;
}

const HEX_DIGITS = { 4: 8, 6: 32 } as const;

/** Of the sets that rules look up. */
function addressesIn({ sets }: DesiredTable): ReadonlySet<string> {
  return new Set(
    Array.from(sets).flatMap(([name, { elements }]) => {
      const family = familyOfMembers(name);
      return family === undefined
        ? []
        : Array.from(elements.values(), ({ key }) => key.toHex().slice(0, HEX_DIGITS[family]));
    }),
  );
}

/** Of all that has an address. */
function addressesOf(cluster: PolicyResources): ReadonlySet<string> {
  const texts = [
    ...cluster.endpoints.flatMap(({ spec }) => spec.ipNetworks ?? []),
    ...cluster.hostEndpoints.flatMap(({ spec }) => spec.expectedIPs ?? []),
    ...[...cluster.networkSets, ...cluster.globalNetworkSets].flatMap(({ spec }) => spec.nets ?? []),
    ...(cluster.serviceEndpoints ?? []).flatMap(({ addresses }) => addresses),
  ];
  return new Set(
    texts.flatMap((text) => {
      const address = parseAddress(text.split("/")[0] ?? "");
      return address === undefined ? [] : [addressBytes(address).toHex()];
    }),
  );
}
