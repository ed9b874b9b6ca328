import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../../test/support/proof-size.ts";
import { clusters, configurations, packets } from "../../../test/support/random-cluster.ts";
import { recordedFlow } from "../../../test/support/recorded-flow.ts";
import { identity } from "../../identity.ts";
import { endpointLabels } from "../../model/endpoint-labels.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { networkSet } from "../../model/network-set.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { namespaceProfile } from "../../model/orchestrator-profile.ts";
import { OWNER_ANNOTATION } from "../../model/pod-owner.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import type { FlowEnd, FlowRecord } from "../flow-record.ts";
import { flowReplay } from "../replay-flows.ts";
import { type DraftOptions, draftPolicies, FlowCollection } from "./draft-policies.ts";
import { draftText } from "./draft-text.ts";

const settingsOf = (node: string) => nodeAgentSettings([], node);
const EVERYTHING: Omit<DraftOptions, "resources"> = {
  ...{ settingsOf, isWanted: () => true, includesDenied: true, aggregation: {} },
};

function draftOf(flows: readonly FlowRecord[], options: Partial<DraftOptions> & Pick<DraftOptions, "resources">) {
  const collection = new FlowCollection(100_000);
  for (const flow of flows) collection.add(flow);
  return draftPolicies(collection.flows(), { ...EVERYTHING, ...options });
}

/** What a cluster has that has applied the text, and nothing else. */
function applied(text: string, resources: PolicyResources): PolicyResources {
  const given = text === "" ? [] : text.split(/^---\n/m).map((document) => Bun.YAML.parse(document));
  const [policies, sets] = [given.flatMap(decodedBy(networkPolicy)), given.flatMap(decodedBy(networkSet))];
  expect(policies.length + sets.length).toBe(given.length);
  return {
    ...{ ...resources, globalNetworkPolicies: [], hostEndpoints: [], tiers: [], networkPolicies: policies },
    networkSets: [...resources.networkSets, ...sets],
  };
}

function decodedBy<R>(codec: { decode(value: unknown): { ok: true; value: R } | { ok: false }; kind: string }) {
  return (value: unknown): readonly R[] => {
    if ((value as { kind: string }).kind !== codec.kind) return [];
    const decoded = codec.decode(value);
    if (!decoded.ok) throw new Error(JSON.stringify(decoded));
    return [decoded.value];
  };
}

/** Of a connection to an endpoint of a Service, half of the time. */
function throughService(flow: FlowRecord, { serviceEndpoints = [] }: PolicyResources): FlowRecord {
  const { destination, protocol } = flow;
  const slice = serviceEndpoints.find(
    ({ addresses, ports }) =>
      addresses.includes(destination.address) &&
      ports.some((each) => each.protocol === protocol && each.port === destination.port),
  );
  if (slice === undefined || Number(flow.source.port ?? 0) % 2 === 0) return flow;
  const service: FlowEnd = {
    ...{ kind: "service", namespace: slice.namespace, name: slice.service, address: "10.96.0.1", port: 1 },
  };
  return { ...flow, destination: service, backend: destination };
}

const some = fc.array(packets, { minLength: 1, maxLength: 12 });
const RUNS = proofSize({ everyDay: 30, soak: 10_000 });

describe("draftPolicies()", () => {
  test("allows everything that was recorded, by rules of which each is needed", () => {
    let [rules, gone, allowed] = [0, 0, 0];
    const mostlyPresent = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(clusters, configurations, some, mostlyPresent, (all, configuration, sent, presence) => {
        const flows = sent.map((packet) => throughService(recordedFlow(packet, all, configuration).flow, all));
        const resources = { ...all, endpoints: all.endpoints.filter((_, index) => presence[index] !== 0) };
        const draft = draftOf(flows, { resources });
        const text = draftText(draft, "enforced");
        const after = applied(text, resources);
        const replay = flowReplay(after, { settingsOf });
        const used = new Set<string>();
        const failed = flows.filter((flow) => {
          const { verdict, sides, notes } = replay(flow);
          gone += notes.length;
          for (const { decidedBy, direction } of sides)
            used.add(`${decidedBy?.namespace}/${decidedBy?.name} ${direction} ${decidedBy?.rule}`);
          return (
            verdict === "not judged" || sides.some((side) => side.verdict === "deny" && isOfPolicy(side.decidedBy))
          );
        });
        allowed += flows.length - failed.length;
        const unplaced = draft.unplaced.values().reduce((sum, count) => sum + count, 0);
        expect(failed.length).toBe(unplaced);
        expect([...draft.unplaced.keys()].filter((reason) => !/is gone/.test(reason))).toEqual([]);
        for (const { metadata, spec } of after.networkPolicies) {
          for (const direction of ["ingress", "egress"] as const) {
            for (const [rule] of (spec[direction] ?? []).entries()) {
              rules += 1;
              expect([...used]).toContain(`${metadata.namespace}/${metadata.name} ${direction} ${rule}`);
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(rules, gone, allowed)).toBeGreaterThan(20);
  });

  test("writes what people would write: owners, Services, DNS, named ports, network sets", () => {
    const draft = draftOf(SHOP_FLOWS, { resources: SHOP, isWanted: inShop });

    expect(draftText(draft, "staged")).toMatchInlineSnapshot(`
      "# outside: 5 addresses
      apiVersion: vendor.org/v3
      kind: NetworkSet
      metadata:
        name: draft-web-to-443
        namespace: shop
        labels:
          network-set: draft-web-to-443
      spec:
        nets:
          - 198.51.100.1/32
          - 198.51.100.2/32
          - 198.51.100.3/32
          - 198.51.100.4/32
          - 198.51.100.5/32
      ---
      # For Deployment shop/web
      apiVersion: vendor.org/v3
      kind: StagedNetworkPolicy
      metadata:
        name: draft-web
        namespace: shop
      spec:
        stagedAction: Set
        selector: app == 'web'
        types:
          - Ingress
          - Egress
        ingress:
          # from DaemonSet front/proxy (1 flow)
          - action: Allow
            protocol: ICMP
            icmp:
              type: 8
              code: 0
            source:
              selector: app == 'proxy'
              namespaceSelector: vendor.org/name == 'front'
          # from DaemonSet front/proxy (2 flows)
          - action: Allow
            protocol: TCP
            source:
              selector: app == 'proxy'
              namespaceSelector: vendor.org/name == 'front'
            destination:
              ports:
                - http
          # from network set office (1 flow)
          - action: Allow
            protocol: TCP
            source:
              selector: role == 'office'
              namespaceSelector: global()
            destination:
              ports:
                - http
          # from shop/bare (1 flow)
          # by address, which another one may have later
          - action: Allow
            protocol: TCP
            source:
              nets:
                - 10.0.0.6/32
            destination:
              ports:
                - http
        egress:
          # DNS: to Service kube-system/kube-dns (2 flows)
          - action: Allow
            destination:
              services:
                name: kube-dns
                namespace: kube-system
          # to Service shop/db (1 flow)
          - action: Allow
            destination:
              services:
                name: db
          # to outside: 5 addresses (5 flows)
          - action: Allow
            protocol: TCP
            destination:
              selector: network-set == 'draft-web-to-443'
              ports:
                - 443
      ---
      # For Job shop/cron-1
      apiVersion: vendor.org/v3
      kind: StagedNetworkPolicy
      metadata:
        name: draft-cron-1
        namespace: shop
      spec:
        stagedAction: Set
        selector: app == 'cron'
        types:
          - Ingress
          - Egress
        # No connection to it was recorded: all are denied
        egress:
          # to StatefulSet shop/db (1 flow)
          - action: Allow
            protocol: TCP
            destination:
              selector: app == 'db'
              ports:
                - 5432
          # to outside: 1 address (1 flow)
          - action: Allow
            protocol: TCP
            destination:
              nets:
                - 192.0.2.80/32
              ports:
                - 443
          # to node node-2 (1 flow)
          # by address, which another one may have later
          - action: Allow
            protocol: TCP
            destination:
              nets:
                - 192.0.2.2/32
              ports:
                - 9100
      ---
      # For StatefulSet shop/db
      apiVersion: vendor.org/v3
      kind: StagedNetworkPolicy
      metadata:
        name: draft-db
        namespace: shop
      spec:
        stagedAction: Set
        selector: app == 'db'
        types:
          - Ingress
          - Egress
        ingress:
          # from Job shop/cron-1, Deployment shop/web (3 flows)
          - action: Allow
            protocol: TCP
            source:
              selector: app in {'cron', 'web'}
            destination:
              ports:
                - 5432
        # No connection from it was recorded: all are denied
      "
    `);
    expect(draft).toMatchObject({ flows: 19, allowed: 17, denied: 0, silent: ["Pod shop/quiet"], problems: [] });
    expect([...draft.unplaced]).toEqual([["one of its ends is hidden from you", 2]]);
    expect(draft.unselectable).toEqual(["Pod shop/bare"]);
  });

  test("is the same text for the same flows in any order and number", () => {
    const text = (flows: readonly FlowRecord[]) =>
      draftText(draftOf(flows, { resources: SHOP, isWanted: inShop }), "staged").replaceAll(/\(\d+ flows?\)/g, "");

    expect(text([...SHOP_FLOWS.toReversed(), ...SHOP_FLOWS])).toBe(text(SHOP_FLOWS));
  });

  test("allows what was denied only if it is asked to", () => {
    const flows = SHOP_FLOWS.map((flow) => ({ ...flow, verdict: "denied" as const, state: "denied" as const }));
    const asked = { resources: SHOP, isWanted: inShop };

    expect(draftOf(flows, { ...asked, includesDenied: false })).toMatchObject({ denied: 19, allowed: 0, policies: [] });
    expect(draftOf(flows, { ...asked, includesDenied: true })).toMatchObject({ denied: 0, allowed: 17 });
  });

  test("does not allow what left its node and was denied on arrival, unless it was allowed at another time", () => {
    const database = { ...endOf("db-0", 5432), node: "other" };
    const leaving = flowOf(endOf("cron-1"), service("db", "shop", 80), { backend: database });
    const arriving = flowOf(endOf("cron-1"), database, { node: "other" });
    const denied: FlowRecord = { ...arriving, verdict: "denied", state: "denied" };
    const drafted = (flows: readonly FlowRecord[]) =>
      draftOf(flows, { resources: SHOP, isWanted: inShop, includesDenied: false });

    expect(drafted([leaving, denied])).toMatchObject({ denied: 2, allowed: 0, policies: [] });
    expect(drafted([leaving, denied, arriving])).toMatchObject({ denied: 1, allowed: 2 });
    expect(drafted([leaving])).toMatchObject({ denied: 0, allowed: 1 });
  });

  test("marks a Service that has more ports than were used", () => {
    const [dns, db] = SHOP.serviceEndpoints ?? [];
    if (dns === undefined || db === undefined) throw new Error("no Services");
    const more = { ...db, ports: [...db.ports, { protocol: 6, port: 9187 }] };
    const text = draftText(
      draftOf(SHOP_FLOWS, { resources: { ...SHOP, serviceEndpoints: [dns, more] }, isWanted: inShop }),
      "enforced",
    );

    expect(text).toMatch(/# to Service shop\/db \(1 flow\)\n +# generalised: the Service also has TCP 9187\n/);
    expect(text.match(/generalised: the Service/g)).toHaveLength(1);
  });

  test("marks that many addresses with many ports became one rule of each with each", () => {
    const flows = Array.from({ length: 21 }, (_, index) =>
      flowOf(endOf("web-1"), outside(`198.51.100.${index + 1}`, 1000 + index * 10)),
    );
    const drafted = (some: readonly FlowRecord[]) =>
      draftText(draftOf(some, { resources: SHOP, isWanted: inShop, includesDenied: false }), "staged");

    expect(drafted(flows)).toContain("# generalised: each of these addresses with each of these ports");
    expect(drafted(flows.slice(1))).not.toContain("generalised");
  });

  test("stands for addresses outside by networks as long as it is told", () => {
    const aggregation = { 4: 24 };
    const text = draftText(draftOf(SHOP_FLOWS, { resources: SHOP, isWanted: inShop, aggregation }), "enforced");

    expect(text).toContain("# generalised: networks as --aggregate says");
    expect(text).toContain("- 198.51.100.0/24");
    expect(text).not.toContain("kind: NetworkSet");
  });

  test("no name or label of a record ends a line, a comment or a selector", () => {
    const evil = "x\nkind: Evil # ' || all() && \u2028'";
    const flows = SHOP_FLOWS.map(({ source, ...flow }) => ({
      ...flow,
      source: {
        ...source,
        kind: "pod" as const,
        namespace: evil,
        name: evil,
        labels: { [evil]: evil, app: evil, role: "fine" },
      },
    }));
    const resources = { ...SHOP, endpoints: [] };
    const text = draftText(draftOf(flows, { resources, includesDenied: true }), "enforced");

    expect(text).not.toMatch(/^\s*kind: Evil/m);
    expect(text.replaceAll(/^ *#.*$/gm, "")).not.toContain("all()");
    expect(applied(text, resources).networkPolicies.length).toBeGreaterThan(0);
  });

  test("judges a hundred thousand records of a thousand connections in seconds, with few rules", () => {
    const flow = flowOf(endOf("web-1"), outside("198.18.0.0"));
    const flows = Array.from({ length: 100_000 }, (_, index) => ({
      ...flow,
      source: { ...flow.source, port: index % 60_000 },
      destination: outside(`198.18.${index % 10}.${index % 100}`, 1 + (index % 1000)),
    }));
    const draft = draftOf(flows, { resources: SHOP, isWanted: inShop });

    expect(draft.policies.flatMap(({ egress }) => egress)).toHaveLength(1);
    expect(draft.sets.map(({ nets }) => nets.length)).toEqual([100]);
    expect(draft).toMatchObject({ flows: 100_000, allowed: 100_000 });
  });

  test("does not allow a crowd of addresses unless it is told which networks", () => {
    const flows = Array.from({ length: 1_001 }, (_, index) =>
      flowOf(outside(`198.18.${index >> 8}.${index & 255}`), endOf("web-1", 8080)),
    );
    const asked = { resources: SHOP, isWanted: inShop };

    const crowded = draftOf(flows, asked);
    expect(crowded).toMatchObject({ policies: [], sets: [], allowed: 0 });
    expect([...crowded.unplaced.keys()].join()).toContain("--aggregate");
    expect(draftOf(flows, { ...asked, aggregation: { 4: 24 } })).toMatchObject({ allowed: 1_001 });
  });
});

const inShop = ({ namespace }: { readonly namespace: string }) => namespace === "shop";

const LABELS = identity.labelPrefix;

function pod(
  [namespace, name, address]: readonly [string, string, string],
  labels: Readonly<Record<string, string>>,
  owner?: string,
  ports: WorkloadEndpoint["spec"]["ports"] = [],
): WorkloadEndpoint {
  return workloadEndpoint.make(
    {
      ...{ namespace, name: `node-k8s-${name.replaceAll("-", "--")}-eth0` },
      labels: endpointLabels(labels, { namespace, orchestrator: "k8s" }),
      ...(owner === undefined ? {} : { annotations: { [OWNER_ANNOTATION]: owner } }),
    },
    {
      ...{ orchestrator: "k8s", node: "node", pod: name, endpoint: "eth0", profiles: [`kns.${namespace}`] },
      ...{ ipNetworks: [`${address}/32`], ports },
    },
  );
}

const WEB = { app: "web", "pod-template-hash": "5d8" };
const HTTP = [{ name: "http", protocol: "TCP" as const, port: 8080 }];
const SHOP: PolicyResources = {
  endpoints: [
    pod(["shop", "web-1", "10.0.0.1"], WEB, "Deployment/web", HTTP),
    pod(["shop", "web-2", "10.0.0.2"], { ...WEB, "pod-template-hash": "7f1" }, "Deployment/web", HTTP),
    pod(["shop", "db-0", "10.0.0.3"], { app: "db", "apps.kubernetes.io/pod-index": "0" }, "StatefulSet/db"),
    pod(["shop", "cron-1", "10.0.0.4"], { app: "cron", "job-name": "cron-1" }, "Job/cron-1"),
    pod(["shop", "quiet", "10.0.0.5"], { app: "quiet" }),
    pod(["shop", "bare", "10.0.0.6"], {}),
    pod(["front", "proxy-1", "10.0.1.1"], { app: "proxy" }, "DaemonSet/proxy"),
    pod(["kube-system", "dns-1", "10.0.2.1"], { "k8s-app": "kube-dns" }, "Deployment/coredns"),
  ],
  profiles: ["shop", "front", "kube-system"].map((name) => namespaceProfile({ metadata: { name } })),
  ...{ containerLabels: [], hostEndpoints: [], networkPolicies: [], globalNetworkPolicies: [], tiers: [] },
  globalNetworkSets: [
    globalNetworkSet.make({ name: "office", labels: { role: "office" } }, { nets: ["203.0.113.0/24"] }),
  ],
  networkSets: [],
  serviceEndpoints: [
    {
      ...{ namespace: "kube-system", service: "kube-dns", addresses: ["10.0.2.1"] },
      ports: [6, 17].map((protocol) => ({ protocol, port: 53 })),
    },
    { namespace: "shop", service: "db", addresses: ["10.0.0.3"], ports: [{ protocol: 6, port: 5432 }] },
  ],
};

function endOf(name: string, port?: number): FlowEnd {
  const endpoint = SHOP.endpoints.find(({ spec }) => spec.pod === name);
  if (endpoint === undefined) throw new Error(name);
  const [address = ""] = (endpoint.spec.ipNetworks?.[0] ?? "").split("/");
  const [kind = "", owner = ""] = endpoint.metadata.annotations?.[OWNER_ANNOTATION]?.split("/") ?? [];
  const labels = Object.entries(endpoint.metadata.labels ?? {}).filter(([label]) => !label.startsWith(LABELS));
  return {
    ...{ kind: "pod", address, namespace: endpoint.metadata.namespace ?? "", name, node: "node" },
    ...{ labels: Object.fromEntries(labels), ...(owner === "" ? {} : { owner: { kind, name: owner } }) },
    ...(port === undefined ? {} : { port }),
  };
}

function flowOf(source: FlowEnd, destination: FlowEnd, more: Partial<FlowRecord> = {}): FlowRecord {
  return {
    ...{ id: "1", node: "node", family: 4, protocol: 6, direction: "both", verdict: "allowed", state: "ended" },
    ...{ source: { port: 40_000, ...source }, destination, decisions: [], start: 1, end: 2 },
    ...{ sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
    ...more,
  };
}

const outside = (address: string, port?: number): FlowEnd => ({
  ...{ kind: "outside", address },
  ...(port === undefined ? {} : { port }),
});
const service = (name: string, namespace: string, port: number): FlowEnd => ({
  ...{ kind: "service", address: "10.96.0.1", port, namespace, name },
});
const DNS = service("kube-dns", "kube-system", 53);

const SHOP_FLOWS: readonly FlowRecord[] = [
  flowOf(endOf("web-1"), service("db", "shop", 5432), { backend: endOf("db-0", 5432) }),
  // The same connection, as the node of the database sees it.
  flowOf(endOf("web-2"), endOf("db-0", 5432)),
  flowOf(endOf("cron-1"), endOf("db-0", 5432)),
  flowOf(endOf("web-1"), DNS, { protocol: 17, backend: endOf("dns-1", 53) }),
  flowOf(endOf("web-2"), DNS, { backend: endOf("dns-1", 53) }),
  flowOf(endOf("proxy-1"), endOf("web-1", 8080)),
  flowOf(endOf("proxy-1"), endOf("web-2", 8080)),
  flowOf(outside("203.0.113.9"), endOf("web-1", 8080), {
    source: { kind: "network set", name: "office", address: "203.0.113.9", port: 7 },
  }),
  ...["1", "2", "3", "4", "5"].map((last) => flowOf(endOf("web-1"), outside(`198.51.100.${last}`, 443))),
  flowOf(endOf("cron-1"), outside("192.0.2.80", 443)),
  flowOf(endOf("cron-1"), { kind: "host", name: "node-2", address: "192.0.2.2", port: 9100 }),
  flowOf(endOf("proxy-1"), endOf("web-1"), { protocol: 1, icmp: { type: 8, code: 0 } }),
  flowOf(endOf("bare"), endOf("web-1", 8080)),
  flowOf({ kind: "hidden", address: "10.0.9.9" }, endOf("db-0", 5432)),
  flowOf({ kind: "hidden", address: "10.0.9.8" }, endOf("db-0", 5432)),
];

function isOfPolicy(decidedBy: { readonly kind: string } | undefined): boolean {
  return decidedBy?.kind === "Tier" || decidedBy?.kind === "NetworkPolicy";
}
