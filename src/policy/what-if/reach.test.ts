import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../../test/support/proof-size.ts";
import { configurations, histories, packets } from "../../../test/support/random-cluster.ts";
import { identity } from "../../identity.ts";
import { formatAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { node } from "../../model/node.ts";
import {
  type NodeAgentConfiguration,
  nodeAgentConfiguration,
  nodeAgentSettings,
} from "../../model/node-agent-configuration.ts";
import { IS_NODE } from "../../model/node-members.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import { judgeInterface } from "../judge/host-judge.ts";
import { judge } from "../judge/judge.ts";
import type { Packet } from "../judge/packet.ts";
import type { AnyEndpoint, PolicyResources } from "../judge/resources.ts";
import type { End } from "./ends.ts";
import { hasPacket } from "./packet-cells.ts";
import { type EndClass, Reach, type Verdict } from "./reach.ts";

const RUNS = proofSize({ everyDay: 15, soak: 1_000 });
const some = fc.array(fc.tuple(packets, fc.nat(), fc.nat()), { minLength: 60, maxLength: 60 });

/** As the judge says, which looks at all resources. */
function judged(
  packet: Packet,
  [source, destination]: readonly [AnyEndpoint | undefined, AnyEndpoint | undefined],
  resources: PolicyResources,
  configuration: NodeAgentConfiguration,
): Verdict {
  const at = (endpoint: AnyEndpoint | undefined, direction: "egress" | "ingress") => {
    if (endpoint === undefined) return "allow";
    if (endpoint.kind === "WorkloadEndpoint") return judge(packet, endpoint, direction, resources).verdict;
    const settings = nodeAgentSettings([configuration], endpoint.spec.node ?? "");
    return judgeInterface({ packet, endpoint, direction, isForwarded: false, settings }, resources).verdict;
  };
  return at(source, "egress") === "allow" && at(destination, "ingress") === "allow" ? "allowed" : "denied";
}

/** The packet as it is, or between any two ends: also outside, and those that do not stand for their class. */
function betweenEnds([packet, left, right]: readonly [Packet, number, number], reach: Reach): Packet {
  const ends = reach.classes.flatMap((each) => each.ends);
  const source = ends[left % (2 * ends.length)];
  if (source === undefined) return packet;
  const others = ends.filter(({ address }) => address.family === source.address.family);
  return { ...packet, source: source.address, destination: others[right % others.length]?.address ?? source.address };
}

/** The ends that have the address: outside, the one that stands for it. */
function endsWith(address: Packet["source"], reach: Reach): readonly (readonly [EndClass, End])[] {
  const all = reach.classes.flatMap((each) => each.ends.map((end) => [each, end] as const));
  const own = all.filter(([, end]) => end.kind !== "outside" && end.text === formatAddress(address));
  if (own.length > 0) return own;
  const around = all.filter(
    ([
      ,
      {
        kind,
        network,
        address: { family },
      },
    ]) =>
      kind === "outside" && family === address.family && (network === undefined || prefixContains(network, address)),
  );
  const lengthOf = ([, { network }]: readonly [EndClass, End]) => network?.length ?? 0;
  return around.toSorted((left, right) => lengthOf(right) - lengthOf(left)).slice(0, 1);
}

/** Addresses of endpoints that cannot be compared: of one state alone. */
function isComparable(address: Packet["source"], states: readonly PolicyResources[], reach: Reach): boolean {
  const text = formatAddress(address);
  const isEnd = reach.classes.some(({ ends }) => ends.some((end) => end.kind !== "outside" && end.text === text));
  return isEnd || !JSON.stringify(states.map(({ endpoints }) => endpoints)).includes(`"${text}/`);
}

/** As a ClusterNetworkPolicy about nodes is converted. */
const NOT_TO_SSD = globalNetworkPolicy.make(
  { name: "not-to-ssd" },
  {
    ...{ tier: "default", order: 0, selector: "all()", types: ["Egress"] },
    ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
    egress: [
      { action: "Deny", protocol: "UDP", destination: { selector: `${IS_NODE} && pcno.disk == 'ssd'` } },
      { action: "Pass" },
    ],
  },
);

function withNodes(state: PolicyResources, which: "as it is" | "with a policy"): PolicyResources {
  const nodes = [
    node.make({ name: "one", labels: { disk: "ssd" } }, { addresses: [{ address: "10.0.0.3" }] }),
    node.make({ name: "two" }, { addresses: [{ address: "fd00::2" }, { address: "10.0.1.1" }] }),
  ];
  const more = which === "with a policy" ? [NOT_TO_SSD] : [];
  return { ...state, nodes, globalNetworkPolicies: [...state.globalNetworkPolicies, ...more] };
}

/** Every packet that both ends of the change can be compared for. */
function compare(
  [former, present]: readonly [PolicyResources, PolicyResources],
  configuration: NodeAgentConfiguration,
  packetsOf: (reach: Reach) => readonly Packet[],
) {
  const settingsOf = (name: string) => nodeAgentSettings([configuration], name);
  const reach = new Reach({ before: { resources: former, settingsOf }, after: { resources: present, settingsOf } });
  const changes = [...reach.changes()];
  let [compared, changed] = [0, 0];
  for (const packet of packetsOf(reach)) {
    if (![packet.source, packet.destination].every((each) => isComparable(each, [former, present], reach))) continue;
    for (const [sourceClass, source] of endsWith(packet.source, reach)) {
      for (const [destinationClass, destination] of endsWith(packet.destination, reach)) {
        if (!mayPass(source, destination)) continue;
        const before = judged(packet, [source.before, destination.before], former, configuration);
        const after = judged(packet, [source.after, destination.after], present, configuration);
        const { cells, breaks } = reach.between(sourceClass, destinationClass);
        const around = cells.filter((cell) => hasPacket(cell, packet, breaks));
        expect(around.map((cell) => [cell.before, cell.after])).toEqual([[before, after]]);
        const lines = changes.filter(
          (pair) =>
            pair.source === sourceClass &&
            pair.destination === destinationClass &&
            pair.cells.some((cell) => cell.before !== cell.after && hasPacket(cell, packet, pair.breaks)),
        );
        expect(lines.length).toBe(before === after ? 0 : 1);
        compared += 1;
        changed += lines.length;
      }
    }
  }
  return { compared, changed };
}

function mayPass(source: End, destination: End): boolean {
  if (source.text === destination.text || (source.kind === "outside" && destination.kind === "outside")) return false;
  const isWithHost = source.kind === "host" || destination.kind === "host";
  return !isWithHost || source.node !== destination.node;
}

describe("Reach", () => {
  test("says of every packet between two ends what the judge says, before and after a change", () => {
    let [compared, changed] = [0, 0];
    fc.assert(
      fc.property(histories, configurations, some, (history, configuration, sent) => {
        const [first, second] = history;
        if (first === undefined || second === undefined) return;
        const states = [withNodes(first, "as it is"), withNodes(second, "with a policy")] as const;
        const counts = compare(states, configuration, (reach) => sent.map((each) => betweenEnds(each, reach)));
        compared += counts.compared;
        changed += counts.changed;
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS);
    expect(changed).toBeGreaterThan(RUNS / 20);
  });

  const CHANGES: readonly (readonly [what: string, rule: PolicyRule])[] = [
    ["a network", { action: "Deny", destination: { nets: ["192.0.2.0/24", "10.9.0.2/32"] } }],
    ["a network with a hole", { action: "Deny", source: { nets: ["192.0.2.0/24"], notNets: ["192.0.2.128/25"] } }],
    ["labels", { action: "Deny", source: { selector: "app == 'b'" } }],
    ["labels that are not", { action: "Deny", destination: { notSelector: "app == 'b' || has(of)" } }],
    ["network sets", { action: "Deny", destination: { selector: "of == 'partners'" } }],
    ["namespaces", { action: "Deny", source: { namespaceSelector: "team == 'red'" } }],
    ["nodes", { action: "Deny", destination: { selector: `${IS_NODE} && pcno.disk == 'ssd'` } }],
    ["everything that has a label", { action: "Deny", destination: { selector: "all()" } }],
    ["a named port", { action: "Deny", protocol: "TCP", destination: { ports: ["http"] } }],
    ["all but a named port", { action: "Deny", protocol: "TCP", destination: { notPorts: ["http", "1:79"] } }],
    ["a source port", { action: "Deny", protocol: "UDP", source: { ports: [53] } }],
    ["a Service", { action: "Deny", protocol: "TCP", destination: { services: { name: "web", namespace: "red" } } }],
    ["a type of ICMP", { action: "Deny", protocol: "ICMP", icmp: { type: 8 } }],
    ["an IP version", { action: "Deny", ipVersion: 6 }],
    ["other protocols", { action: "Deny", notProtocol: "TCP" }],
  ];

  test.each(CHANGES)("tells apart what a rule about %s tells apart", (_, rule) => {
    const spec = { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false };
    let changed = 0;
    for (const types of [["Ingress"], ["Egress"]] as const) {
      const rules = [rule, { action: "Allow" as const }];
      const policy = globalNetworkPolicy.make(
        { name: "new" },
        { ...spec, selector: "has(app)", types: [...types], ingress: rules, egress: rules },
      );
      const states = [SMALL, { ...SMALL, globalNetworkPolicies: [policy] }] as const;
      const configuration = nodeAgentConfiguration.make({ name: "default" }, {});
      changed += compare(states, configuration, everyPacket).changed;
      // Who belongs to what the rule names changes, and the rule does not.
      const [first, ...others] = SMALL.endpoints;
      const moved = { ...first, metadata: { ...first?.metadata, labels: { app: "c" } } } as WorkloadEndpoint;
      const after = { ...states[1], endpoints: [moved, ...others], globalNetworkSets: [], nodes: [] };
      compare([states[1], after], configuration, everyPacket);
    }
    // A rule about a source or a destination outside counts in one of both directions.
    expect(changed).toBeGreaterThan(0);
  });
});

test("a host endpoint for all interfaces decides about every address of its node", () => {
  const hosts = [hostEndpoint.make({ name: "n2" }, { node: "n2", interfaceName: "*", expectedIPs: ["172.16.0.2"] })];
  const nodes = [
    node.make({ name: "n2" }, { addresses: [{ address: "172.16.0.2" }, { address: "172.16.9.2" }] }),
    node.make({ name: "n3" }, { addresses: [{ address: "172.16.0.3" }] }),
  ];
  const settingsOf = (name: string) => nodeAgentSettings([], name);
  const [before, after] = [[], hosts].map((hostEndpoints) => ({
    resources: { ...SMALL, nodes, hostEndpoints },
    settingsOf,
  }));
  if (before === undefined || after === undefined) throw new Error("no states");
  const changes = [...new Reach({ before, after }).changes()];
  const closed = changes
    .filter(({ source }) => source.kind === "workload")
    .flatMap(({ destination }) => destination.ends.map(({ text }) => text));
  expect(new Set(closed)).toEqual(new Set(["172.16.0.2", "172.16.9.2"]));
});

const pod = (name: string, namespace: string, app: string, addresses: readonly string[], ports: number[] = []) =>
  workloadEndpoint.make(
    { name: `n1-k8s-${name}-eth0`, namespace, labels: { app, [`${identity.labelPrefix}namespace`]: namespace } },
    {
      ...{ orchestrator: "k8s", node: "n1", pod: name, endpoint: "eth0", profiles: [`kns.${namespace}`] },
      ipNetworks: addresses.map((text) => `${text}/${text.includes(":") ? 128 : 32}`),
      ports: ports.map((port) => ({ name: "http", protocol: "TCP", port })),
    },
  );

const OPEN = [{ action: "Allow" as const }];
const SMALL: PolicyResources = {
  endpoints: [
    pod("a", "red", "a", ["10.9.0.1", "fd09::1"], [8080]),
    pod("b", "red", "b", ["10.9.0.2", "fd09::2"], [80]),
    pod("c", "blue", "b", ["10.9.0.3"], [80]),
    pod("d", "blue", "a", ["10.9.0.4"]),
  ],
  profiles: ["red", "blue"].map((name) =>
    profile.make({ name: `kns.${name}` }, { ingress: OPEN, egress: OPEN, labelsToApply: { "pcns.team": name } }),
  ),
  nodes: [
    node.make({ name: "n2", labels: { disk: "ssd" } }, { addresses: [{ address: "172.16.0.2" }] }),
    node.make({ name: "n3" }, { addresses: [{ address: "172.16.0.3" }] }),
  ],
  globalNetworkSets: [
    globalNetworkSet.make({ name: "partners", labels: { of: "partners" } }, { nets: ["198.51.100.0/24"] }),
    globalNetworkSet.make({ name: "others", labels: { of: "others" } }, { nets: ["203.0.113.0/24"] }),
  ],
  serviceEndpoints: [{ namespace: "red", service: "web", addresses: ["10.9.0.2"], ports: [{ protocol: 6, port: 80 }] }],
  ...{
    containerLabels: [],
    hostEndpoints: [],
    networkPolicies: [],
    globalNetworkPolicies: [],
    networkSets: [],
    tiers: [],
  },
};

const SHAPES = [
  ...[0, 79, 80, 81, 8080].map((destinationPort) => ({ protocol: 6, sourcePort: 40_000, destinationPort })),
  ...[53, 54].map((sourcePort) => ({ protocol: 17, sourcePort, destinationPort: 80 })),
  ...[3, 8].map((type) => ({ protocol: 1, icmp: { type, code: 0 } })),
  { protocol: 47 },
];

/** Between all ends, also those that do not stand for their class. */
function everyPacket(reach: Reach): readonly Packet[] {
  const ends = reach.classes.flatMap((each) => each.ends);
  return ends.flatMap(({ address: source }) =>
    ends
      .filter(({ address }) => address.family === source.family)
      .flatMap(({ address: destination }) => SHAPES.map((shape) => ({ ...shape, source, destination }))),
  );
}
