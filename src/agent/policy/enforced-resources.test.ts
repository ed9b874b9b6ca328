import { describe, expect, test } from "bun:test";
import { address } from "../../../test/support/ip.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { type HeldRecord, KindSnapshot } from "../../datastore/replica/kind-snapshot.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY, NODE, TIER } from "../../model/kinds.ts";
import { type NetworkPolicy, networkPolicy } from "../../model/network-policy.ts";
import { IS_NODE } from "../../model/node-members.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import { POLICY_KINDS, type PolicyUpdate, type PolicyValues } from "../../policy/inputs.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { NO_CONNECTIONS } from "./affected-connections.ts";
import { EnforcedResources } from "./enforced-resources.ts";

const [WEB, DB, FAR, OUTSIDE] = ["10.0.0.1", "10.0.0.2", "10.0.9.1", "198.51.100.2"] as const;
const pod = (namespace: string, app: string, of: { readonly at: string; readonly node: string }) =>
  workloadEndpoint.make(
    { name: app, namespace, labels: { app, [`${identity.labelPrefix}namespace`]: namespace } },
    { node: of.node, ipNetworks: [`${of.at}/32`], interfaceName: `vend${app}`, profiles: ["open"] },
  );
const policyOf = (...ingress: NonNullable<NetworkPolicy["spec"]["ingress"]>): NetworkPolicy =>
  networkPolicy.make(
    { name: "db", namespace: "shop" },
    { tier: "default", selector: "app == 'db'", types: ["Ingress"], ingress },
  );
const [CLOSED, OPEN] = [policyOf(), policyOf({ action: "Allow" })];
const KEY = NETWORK_POLICY.key({ namespace: "shop", name: "db" });
const RESOURCES: PolicyResources = {
  ...NO_RESOURCES,
  profiles: [profile.make({ name: "open" }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] })],
  endpoints: [
    pod("shop", "db", { at: DB, node: "one" }),
    pod("lab", "web", { at: WEB, node: "one" }),
    pod("shop", "far", { at: FAR, node: "two" }),
  ],
};

type Kind = keyof PolicyValues | "nodes";

function snapshotOf(resources: PolicyResources, unreadable: Partial<Record<Kind, string>>): PolicyUpdate["snapshot"] {
  const changes = changesBetween(NO_RESOURCES, resources);
  const snapshots = ([...Object.keys(POLICY_KINDS), "nodes"] as Kind[]).map((kind) => {
    const records = new Map<string, HeldRecord<unknown>>();
    for (const { key, ...change } of changes[kind] ?? [])
      if (change.kind === "put") records.set(key, { ...origin(key), kind: "readable", value: change.value });
    const key = unreadable[kind];
    const failure = new PluginError("record-malformed", "no JSON");
    if (key !== undefined) records.set(key, { ...origin(key), kind: "unreadable", failure });
    return [kind, KindSnapshot.empty<unknown>().with("1", records)] as const;
  });
  return Object.fromEntries(snapshots) as PolicyUpdate["snapshot"];
}

function origin(key: string) {
  return { key, revision: "1", digest: 0 };
}

interface Situation {
  readonly former?: ReadonlyMap<string, NetworkPolicy | undefined>;
  readonly unreadable?: Partial<Record<Kind, string>>;
}

function read(more: Partial<PolicyResources>, { former = new Map(), unreadable = {} }: Situation = {}) {
  const resources = { ...RESOURCES, ...more };
  const compiler = new PolicyCompiler({ node: "one" });
  compiler.update(changesBetween(NO_RESOURCES, resources));
  return EnforcedResources.read({
    ...{ node: "one", hasServices: false, snapshot: snapshotOf(resources, unreadable), compiler, former },
    ...{ interfaces: () => [], interfaceTowards: () => undefined },
  });
}

/** A connection to the database. */
async function denies(enforced: EnforcedResources | undefined, from: string = WEB): Promise<boolean | undefined> {
  const judge = await enforced?.judgeOf(new Set([from, DB]), async () => {});
  return judge?.isDenied({
    ...{ protocol: 6, source: address(from), destination: address(DB), answering: address(DB) },
    ports: { source: 40_000, destination: 5432, answering: 5432 },
  });
}

describe("what is enforced now", () => {
  test("is what was acknowledged, and of policies that wait for their turn what they were before", async () => {
    expect(await denies(read({}))).toBe(false);
    expect(await denies(read({ networkPolicies: [CLOSED] }))).toBe(true);
    expect(await denies(read({ networkPolicies: [CLOSED] }, { former: new Map([[KEY, undefined]]) }))).toBe(false);
    expect(await denies(read({ networkPolicies: [CLOSED] }, { former: new Map([[KEY, OPEN]]) }))).toBe(false);
    expect(await denies(read({ networkPolicies: [OPEN] }, { former: new Map([[KEY, CLOSED]]) }))).toBe(true);
    expect(await denies(read({}, { former: new Map([[KEY, CLOSED]]) }))).toBe(true);
  });

  test("knows the workloads of other nodes by their labels", async () => {
    const far = policyOf({ action: "Allow", source: { selector: "app == 'far'" } });

    expect(await denies(read({ networkPolicies: [far] }), FAR)).toBe(false);
    expect(await denies(read({ networkPolicies: [far] }), OUTSIDE)).toBe(true);
  });

  test.each<Kind>(["containerLabels", "hostEndpoints", "profiles", "networkSets", "globalNetworkSets", "tiers"])(
    "is not known if one of the %s cannot be read",
    (kind) => {
      expect(read({}, { unreadable: { [kind]: TIER.key({ name: "broken" }) } })).toBeUndefined();
    },
  );

  test("is not known if a node cannot be read, and rules select nodes", () => {
    const unreadable = { nodes: NODE.key({ name: "broken" }) };
    const selecting = policyOf({ action: "Allow", source: { selector: IS_NODE } });

    expect(read({ networkPolicies: [selecting] }, { unreadable })).toBeUndefined();
    expect(read({ networkPolicies: [selecting] })).toBeDefined();
    expect(read({ networkPolicies: [CLOSED] }, { unreadable })).toBeDefined();
  });

  test("denies what a policy that cannot be read may concern, as the kernel does", async () => {
    const broken = { namespace: "shop", name: "broken" };
    const elsewhere = NETWORK_POLICY.key({ ...broken, namespace: "other" });

    expect(await denies(read({}, { unreadable: { networkPolicies: NETWORK_POLICY.key(broken) } }))).toBe(true);
    expect(await denies(read({}, { unreadable: { networkPolicies: elsewhere } }))).toBe(false);
    const key = GLOBAL_NETWORK_POLICY.key({ name: "broken" });
    expect(await denies(read({}, { unreadable: { globalNetworkPolicies: key } }))).toBe(true);
  });

  test("concerns connections of the workloads of this node, and all if it has a host endpoint", () => {
    const [lab, web] = [
      { ...NO_CONNECTIONS, namespaces: new Set(["lab"]) },
      { ...NO_CONNECTIONS, addresses: new Set<string>([WEB]) },
    ];
    const all = { ...NO_CONNECTIONS, all: true };
    const here = read({});
    const concerned = (of: typeof here, affected: typeof all) =>
      [
        [WEB, DB],
        [DB, OUTSIDE],
        [FAR, OUTSIDE],
      ].filter(([from = "", to = ""]) => of?.isConcernedBy(affected)(from, to)).length;

    expect([all, lab, web].map((affected) => concerned(here, affected))).toEqual([2, 1, 1]);
    const hostEndpoints = [hostEndpoint.make({ name: "eth0" }, { node: "one", interfaceName: "eth0" })];
    expect(concerned(read({ hostEndpoints }), all)).toBe(3);
    const others = [hostEndpoint.make({ name: "eth0" }, { node: "two", interfaceName: "eth0" })];
    expect(concerned(read({ hostEndpoints: others }), all)).toBe(2);
  });
});
