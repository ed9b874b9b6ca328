/** Random clusters and packets for property tests: few names and addresses, so that they meet often. */
import fc from "fast-check";
import { identity } from "../../src/identity.ts";
import { type Address, parseAddress } from "../../src/ip/address.ts";
import { CONTAINER_ORCHESTRATOR, containerLabels } from "../../src/model/container-labels.ts";
import { NETWORK_ANNOTATION } from "../../src/model/endpoint-labels.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { globalNetworkSet } from "../../src/model/global-network-set.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { networkProfileSpec } from "../../src/model/network-profile.ts";
import { networkSet } from "../../src/model/network-set.ts";
import { type NodeAgentConfiguration, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { DEFAULT_ALLOW_PROFILE, profile } from "../../src/model/profile.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import { tier } from "../../src/model/tier.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { HostInterface } from "../../src/policy/host-interface.ts";
import type { Passage } from "../../src/policy/judge/host-judge.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";

export const LOCAL_NODE = "here";
/** The interfaces of the local node that packets can pass; the last one of the workloads is unknown to the datastore. */
const INTERFACES = ["eth0", "eth1", "lo", ...["0", "1", "9"].map((index) => identity.interfacePrefix + index)];

const NAMESPACES = ["red", "blue"];
const ACCOUNTS = ["reader", "writer"];
const OTHER_NODES = ["there", "there a"];
/** The last two read the same after the names of their nodes, with a space between. */
const CONTAINERS = ["web", "db", "b", "a b"];
/** Their profiles: one as ADD writes it, and one that somebody has edited. */
const NETWORKS = ["network", "edited"];
const VALUES = ["a", "b"];
const TIERS = ["default", "first", "last"];
const ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1", "fd00::1", "fd00::2", "fd00::1:1"];
const PREFIXES = [
  "10.0.0.0/24",
  "10.0.0.2/31",
  "10.0.0.1",
  "10.0.1.0/24",
  "fd00::/112",
  "fd00::2",
  "0.0.0.0/0",
  "::/0",
];
const PORTS = [80, 82, 443];
const SERVICES = ["web", "dns"];
/** More than a rule compares one by one; none can be merged with another. */
const LONG = 12;
const manyPorts = (...more: readonly number[]) => [
  ...more,
  ...Array.from({ length: LONG }, (_, index) => 1_000 + 2 * index),
];
const manyPrefixes = (...more: readonly string[]) => [
  ...more,
  ...Array.from({ length: LONG }, (_, index) => `10.${9 + 2 * index}.0.0/16`),
];

const pick = <Value>(values: readonly Value[]) => fc.constantFrom(...values);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 2 });
/** With several criteria in most rules hardly a packet would match. */
const rare = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const some = <Value>(value: fc.Arbitrary<Value>, most: number) => fc.array(value, { maxLength: most });

const labels = fc
  .record({ app: optional(pick(VALUES)), role: optional(pick(VALUES)) })
  .map((all): Record<string, string> => ({ ...defined(all) }));

const selector = fc.oneof(
  pick(["all()", "has(app)", "!has(role)", "app == 'a'", "app != 'b'", "role in {'a', 'b'}", "role not in {'a'}"]),
  pick(["app == 'a' && role == 'b'", "app == 'a' || !has(app)", "!(role == 'a')", "app starts with 'a'"]),
);
const namespaceSelector = pick([
  "all()",
  "global()",
  "app == 'a'",
  `${identity.labelPrefix}name == 'red'`,
  "!has(app)",
]);

const port = fc.oneof(pick(PORTS), pick(["80:81", "81:90", "443", "web", "dns"]));

const nets = fc.oneof(
  { weight: 4, arbitrary: some(pick(PREFIXES), 2) },
  { weight: 1, arbitrary: some(pick(PREFIXES), 2).map((more) => manyPrefixes(...more)) },
);

const byLabelsOrNets = fc
  .record({
    nets: rare(nets),
    notNets: rare(nets),
    selector: rare(selector),
    notSelector: rare(selector),
    namespaceSelector: rare(namespaceSelector),
    serviceAccounts: rare(
      fc
        .record({ names: optional(some(pick(ACCOUNTS), 1)), selector: optional(pick(["app == 'a'", "all()"])) })
        .map(defined),
    ),
  })
  .map(defined);

const byService = fc.record({ services: fc.record({ name: pick(SERVICES), namespace: pick(NAMESPACES) }) });

const entity = fc.oneof({ weight: 5, arbitrary: byLabelsOrNets }, { weight: 1, arbitrary: byService });

const serviceEndpoints = some(
  fc.record({
    namespace: pick(NAMESPACES),
    service: pick(SERVICES),
    addresses: fc.uniqueArray(pick(ADDRESSES), { maxLength: 3 }),
    ports: some(fc.record({ protocol: pick([6, 17]), port: pick(PORTS) }), 2),
  }),
  3,
);

const portList = fc.oneof(
  { weight: 5, arbitrary: some(port, 2) },
  { weight: 1, arbitrary: some(pick(PORTS), 2).map((more) => manyPorts(...more)) },
);
const ports = fc.record({ ports: optional(portList), notPorts: optional(portList) }).map(defined);

const rule = fc
  .record({
    action: pick(["Allow", "Deny", "Log", "Pass"] as const),
    ipVersion: rare(pick([4, 6] as const)),
    match: fc.oneof(
      fc.constant({}),
      fc.record({ notProtocol: pick(["TCP", 17]) }),
      fc.record({ protocol: pick(["TCP", "UDP", "SCTP", 6]), source: ports, destination: ports }),
      fc
        .record({ protocol: pick(["ICMP", "ICMPv6"]), icmp: optional(pick([{ type: 8 }, { type: 3, code: 1 }])) })
        .map(defined),
      fc
        .record({ protocol: pick(["ICMP", "ICMPv6"]), notICMP: optional(pick([{ type: 8 }, { type: 3, code: 1 }])) })
        .map(defined),
    ),
    source: optional(entity),
    destination: optional(entity),
  })
  .map(({ match, source, destination, ...others }) => {
    const given: Record<string, unknown> = match;
    return defined({
      ...others,
      ...match,
      source: merged(given["source"], source),
      destination: merged(given["destination"], destination),
    });
  });

/** Few, so that requests meet them. Methods and paths do not matter for packets. */
const http = fc
  .record({
    methods: optional(some(pick(["GET", "POST", "*"]), 2)),
    paths: optional(some(pick([{ exact: "/" }, { exact: "/a" }, { prefix: "/a/" }, { prefix: "/b" }]), 2)),
  })
  .map(defined);

const httpRule = fc
  .record({
    protocol: optional(pick(["TCP", 6])),
    source: optional(entity),
    destination: ports,
    http,
  })
  .map((match) => ({ action: "Allow" as const, ...defined(match) }));

/** Refused by admission; a policy that has it all the same denies everything. */
const wrongHttpRule = fc.record({ action: pick(["Allow", "Deny"] as const), protocol: pick(["TCP", "UDP"]), http });

const rules = fc.array(fc.oneof({ weight: 60, arbitrary: rule }, { weight: 1, arbitrary: wrongHttpRule }), {
  minLength: 1,
  maxLength: 3,
});
const ingressRules = fc.array(
  fc.oneof(
    { weight: 60, arbitrary: rule },
    { weight: 20, arbitrary: httpRule },
    { weight: 1, arbitrary: wrongHttpRule },
  ),
  { minLength: 1, maxLength: 3 },
);

const policySpec = fc
  .record({
    tier: pick(TIERS),
    order: optional(pick([1, 2, 2.5])),
    selector: optional(selector),
    serviceAccountSelector: rare(pick(["app == 'a'", "all()"])),
    types: optional(pick([["Ingress"], ["Egress"], ["Ingress", "Egress"]])),
    ingress: optional(ingressRules),
    egress: optional(rules),
  })
  .map(defined);

const endpoint = (index: number, node: string) =>
  fc
    .record({
      namespace: pick(NAMESPACES),
      account: optional(pick(ACCOUNTS)),
      labels,
      addresses: fc.uniqueArray(pick(ADDRESSES), { minLength: 1, maxLength: 2 }),
      ports: some(fc.record({ name: pick(["web", "dns"]), protocol: pick(["TCP", "UDP"]), port: pick(PORTS) }), 2),
      hasSidecar: fc.boolean(),
      container: rare(fc.record({ workload: optional(pick(CONTAINERS)), network: pick(NETWORKS) })),
    })
    .map(({ namespace, account, labels: own, addresses, ports: declared, hasSidecar, container }) =>
      workloadEndpoint.make(
        {
          name: `${node}-k8s-pod${index}-eth0`,
          namespace,
          labels: {
            ...own,
            [`${identity.labelPrefix}namespace`]: namespace,
            [`${identity.labelPrefix}orchestrator`]: container === undefined ? "k8s" : CONTAINER_ORCHESTRATOR,
            ...(account === undefined ? {} : { [`${identity.labelPrefix}serviceaccount`]: account }),
          },
          annotations: {
            ...(hasSidecar ? { [SIDECAR_ANNOTATION]: "1.0.0" } : {}),
            ...(container?.network === undefined ? {} : { [NETWORK_ANNOTATION]: container.network }),
          },
        },
        {
          node,
          ...(container === undefined
            ? { orchestrator: "k8s", pod: `pod${index}` }
            : { orchestrator: CONTAINER_ORCHESTRATOR, ...defined({ workload: container.workload }) }),
          endpoint: "eth0",
          ipNetworks: addresses.map((text) => `${text}/${text.includes(":") ? 128 : 32}`),
          profiles:
            container === undefined
              ? [`kns.${namespace}`, ...(account === undefined ? [] : [`ksa.${namespace}.${account}`])]
              : [container.network],
          interfaceName: `${identity.interfacePrefix}${index}`,
          ports: declared,
        },
      ),
    );

const endpoints = fc
  .tuple(fc.integer({ min: 1, max: 2 }), fc.integer({ min: 0, max: 3 }))
  .chain(([local, remote]) =>
    fc.tuple(
      ...Array.from({ length: local + remote }, (_, index) =>
        endpoint(index, index < local ? LOCAL_NODE : (OTHER_NODES[index % 2] ?? "there")),
      ),
    ),
  );

const profiles = fc
  .tuple(
    ...NAMESPACES.map((name) =>
      fc.tuple(labels, rules, rules).map(([own, ingress, egress]) => ({ name, own, ingress, egress })),
    ),
  )
  .map((all) => [
    ...all.map(({ name, own, ingress, egress }) =>
      profile.make({ name: `kns.${name}` }, {
        ingress: [...ingress, { action: "Allow" }],
        egress: [...egress, { action: "Allow" }],
        // Without a prefix too: an endpoint's own label of that name wins.
        labelsToApply: { ...own, ...prefixed("pcns.", { ...own, [`${identity.labelPrefix}name`]: name }) },
      } as never),
    ),
    ...NETWORKS.map((name) =>
      profile.make(
        { name, ...(name === "edited" ? { annotations: { note: "edited" } } : {}) },
        networkProfileSpec(name),
      ),
    ),
    ...NAMESPACES.flatMap((namespace) =>
      ACCOUNTS.map((account, index) =>
        profile.make(
          { name: `ksa.${namespace}.${account}` },
          { labelsToApply: { role: VALUES[index] ?? "", ...prefixed("pcsa.", { app: VALUES[index] ?? "" }) } },
        ),
      ),
    ),
  ]);

/** Also several about the same, and what only a damaged record can say: it is about nobody, or sets what only the product may set. */
const labelsOfContainers = some(
  fc.record({
    target: fc.oneof(
      { weight: 4, arbitrary: fc.record({ node: pick([LOCAL_NODE, ...OTHER_NODES]), container: pick(CONTAINERS) }) },
      { weight: 4, arbitrary: fc.record({ network: pick(NETWORKS) }) },
      {
        weight: 1,
        arbitrary: pick([
          { container: "web" },
          { node: LOCAL_NODE, network: "net" },
          { container: "web", network: "net" },
        ]),
      },
    ),
    given: labels,
    reserved: rare(pick([`${identity.labelPrefix}namespace`, "pcns.app", "pcsa.app"])),
  }),
  3,
).map((all) =>
  all.map(({ target, given, reserved }, index) =>
    containerLabels.make(
      { name: `labels${index}` },
      { ...target, labels: { ...given, ...(reserved === undefined ? {} : { [reserved]: "a" }) } },
    ),
  ),
);

const hostEndpoints = fc.array(
  fc.record({
    node: pick([LOCAL_NODE, LOCAL_NODE, LOCAL_NODE, "there"]),
    labels,
    interfaceName: optional(pick(["eth0", "eth1", "*", "*", `${identity.interfacePrefix}0`])),
    expectedIPs: fc.uniqueArray(pick(ADDRESSES), { minLength: 1, maxLength: 2 }),
    profiles: pick([[], ["kns.red"], ["network"], ["kns.blue", "ksa.red.reader"], [DEFAULT_ALLOW_PROFILE]]),
    ports: some(fc.record({ name: pick(["web", "dns"]), protocol: pick(["TCP", "UDP"]), port: pick(PORTS) }), 1),
  }),
  { minLength: 1, maxLength: 3 },
);

/** A policy that is evaluated before routing, or also for forwarded packets, or only for packets of the host itself. */
const hostOptions = pick([
  { doNotTrack: false, preDNAT: false, applyOnForward: false },
  { doNotTrack: false, preDNAT: false, applyOnForward: true },
  { doNotTrack: false, preDNAT: true, applyOnForward: true },
  { doNotTrack: true, preDNAT: false, applyOnForward: true },
]);

const nameIn = (spec: { readonly tier?: string }, index: number) =>
  spec.tier === undefined || spec.tier === "default" ? `policy${index}` : `${spec.tier}.policy${index}`;

export const clusters: fc.Arbitrary<PolicyResources> = fc
  .record({
    endpoints,
    containerLabels: labelsOfContainers,
    profiles,
    networkPolicies: some(fc.record({ namespace: pick(NAMESPACES), spec: policySpec }), 3),
    globalNetworkPolicies: fc.array(
      fc.record({ namespaceSelector: rare(namespaceSelector), spec: policySpec, options: hostOptions }),
      { minLength: 1, maxLength: 4 },
    ),
    hostEndpoints,
    networkSets: some(fc.record({ namespace: pick(NAMESPACES), labels, nets: some(pick(PREFIXES), 2) }), 1),
    globalNetworkSets: some(fc.record({ labels, nets: some(pick(PREFIXES), 2) }), 1),
    serviceEndpoints,
    tiers: pick([[], ["first"], ["first", "last"]]),
    passing: pick([[], ["first"], ["last"]]),
  })
  .map((cluster) => ({
    endpoints: cluster.endpoints,
    containerLabels: cluster.containerLabels,
    hostEndpoints: cluster.hostEndpoints.map(({ labels: own, ...spec }, index) =>
      hostEndpoint.make({ name: `host${index}`, labels: own }, defined(spec) as never),
    ),
    profiles: cluster.profiles,
    networkPolicies: cluster.networkPolicies.map(({ namespace, spec }, index) =>
      networkPolicy.make({ name: nameIn(spec, index), namespace }, spec as never),
    ),
    globalNetworkPolicies: cluster.globalNetworkPolicies.map(({ spec, options, namespaceSelector: wanted }, index) =>
      globalNetworkPolicy.make({ name: nameIn(spec, index) }, {
        ...(options.preDNAT ? { ...spec, types: ["Ingress"], egress: [] } : spec),
        ...options,
        ...(wanted === undefined ? {} : { namespaceSelector: wanted }),
      } as never),
    ),
    networkSets: cluster.networkSets.map(({ namespace, labels: own, nets }, index) =>
      networkSet.make({ name: `set${index}`, namespace, labels: own }, { nets }),
    ),
    globalNetworkSets: cluster.globalNetworkSets.map(({ labels: own, nets }, index) =>
      globalNetworkSet.make({ name: `set${index}`, labels: own }, { nets }),
    ),
    serviceEndpoints: cluster.serviceEndpoints,
    tiers: cluster.tiers.map((name, index) =>
      tier.make(
        { name },
        { order: index === 0 ? 10 : 2_000_000, defaultAction: cluster.passing.includes(name) ? "Pass" : "Deny" },
      ),
    ),
  }));

/** Each cluster after the first has most of the one before: a change of one kind must be noticed without others. */
export const histories: fc.Arbitrary<readonly PolicyResources[]> = fc
  .tuple(
    clusters,
    fc.array(
      fc.record({
        next: clusters,
        kinds: fc.subarray(
          [
            "endpoints",
            "containerLabels",
            "hostEndpoints",
            "profiles",
            "networkPolicies",
            "globalNetworkPolicies",
            "networkSets",
            "globalNetworkSets",
            "serviceEndpoints",
            "tiers",
          ] as const,
          { maxLength: 2 },
        ),
        togglesOptions: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([first, steps]) => {
    const history = [first];
    for (const { next, kinds, togglesOptions } of steps) {
      const before = history.at(-1) ?? first;
      const now = { ...before, ...Object.fromEntries(kinds.map((kind) => [kind, next[kind]])) };
      const policies = now.globalNetworkPolicies;
      history.push(togglesOptions ? { ...now, globalNetworkPolicies: policies.map(withOtherOptions) } : now);
    }
    return history;
  });

/** The same rules at another stage. */
function withOtherOptions(policy: GlobalNetworkPolicy): GlobalNetworkPolicy {
  const { doNotTrack, preDNAT, applyOnForward } = policy.spec;
  const options = doNotTrack || preDNAT ? { doNotTrack: false, preDNAT: false } : { applyOnForward: !applyOnForward };
  return { ...policy, spec: { ...policy.spec, ...options } };
}

const PAIRS: readonly (readonly [Address, Address])[] = ([4, 6] as const).flatMap((family) => {
  const own = ADDRESSES.flatMap((text) => parseAddress(text) ?? []).filter((address) => address.family === family);
  return own.flatMap((source) => own.map((destination) => [source, destination] as const));
});

export const packets: fc.Arbitrary<Packet> = fc
  .tuple(
    pick(PAIRS),
    fc.oneof(
      fc.record({
        protocol: pick([6, 17, 132]),
        sourcePort: pick([...PORTS, 81]),
        destinationPort: pick([...PORTS, 81]),
      }),
      fc.record({
        protocol: pick([1, 58]),
        icmp: pick([
          { type: 8, code: 0 },
          { type: 135, code: 0 },
          { type: 3, code: 1 },
          { type: 3, code: 2 },
        ]),
      }),
    ),
  )
  .map(([[source, destination], rest]): Packet => ({ source, destination, ...rest }));

const interfaces = pick(["eth0", "eth0", "eth1", ...INTERFACES]);
export const passages: fc.Arbitrary<Passage> = fc.oneof(
  fc.record({ kind: fc.constant("to host" as const), from: interfaces }),
  fc.record({ kind: fc.constant("from host" as const), to: interfaces }),
  fc.record({ kind: fc.constant("forwarded" as const), from: interfaces, to: interfaces }),
);

/** Which addresses the interfaces of the local node have. */
export const hostInterfaces: fc.Arbitrary<readonly HostInterface[]> = fc
  .uniqueArray(fc.record({ name: pick(INTERFACES), addresses: some(pick(ADDRESSES), 2) }), {
    selector: ({ name }) => name,
    maxLength: 3,
  })
  .map((all) =>
    all.map(({ name, addresses }) => ({ name, addresses: addresses.flatMap((text) => parseAddress(text) ?? []) })),
  );

const failsafes = some(fc.record({ protocol: pick(["TCP", "udp"] as const), port: pick(PORTS) }), 2);

export const configurations: fc.Arbitrary<NodeAgentConfiguration> = fc
  .record({
    defaultEndpointToHostAction: optional(pick(["Accept", "Drop", "Return"] as const)),
    denyAction: optional(pick(["Drop", "Reject"] as const)),
    failsafeInboundHostPorts: optional(failsafes),
    failsafeOutboundHostPorts: optional(failsafes),
  })
  .map((spec) => nodeAgentConfiguration.make({ name: "default" }, defined(spec)));

/** Without the fields that are absent. */
type Given<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

function defined<Fields extends object>(fields: Fields): Given<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<Fields>;
}

function merged(left: unknown, right: unknown): object | undefined {
  return left === undefined && right === undefined ? undefined : { ...(left ?? {}), ...(right ?? {}) };
}

function prefixed(prefix: string, own: object): Record<string, string> {
  return Object.fromEntries(Object.entries(own).map(([label, value]) => [`${prefix}${label}`, value]));
}
