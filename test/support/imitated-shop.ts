/**
 * The records and objects of a small cluster that runs a shop: for tests and pictures of the console. Some of it is in trouble, so that
 * there is something to see.
 */
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { formatAddress, parseAddress } from "../../src/ip/address.ts";
import { addressAt, assignOrdinal, emptyBlock, ordinalIn, releaseOrdinals } from "../../src/ipam/block.ts";
import { writeAffinity } from "../../src/model/block-affinity.ts";
import { endpointLabels } from "../../src/model/endpoint-labels.ts";
import { affineNode, hostAffinity, type IPAMBlock, writeBlock } from "../../src/model/ipam-block.ts";
import { writeHandle } from "../../src/model/ipam-handle.ts";
import { affinityKey, blockKey, borrowedKey, handleKey } from "../../src/model/keys.ts";
import { ENDPOINT, NETWORK_POLICY, NODE, POOL, PROFILE } from "../../src/model/kinds.ts";
import type { NetworkPolicySpec } from "../../src/model/network-policy.ts";
import { networkProfileSpec } from "../../src/model/network-profile.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import { prefix, reservationChange } from "./ipam.ts";

const { systemNamespace: SYSTEM, nodeAgent, controllers, operator, product, labelPrefix } = identity;
export const RELEASE = "v1.4.0";
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export interface ShopPod {
  readonly namespace: string;
  readonly app: string;
  readonly name: string;
  readonly owner: { readonly kind: string; readonly name: string };
  readonly node: string;
  readonly address: string;
}

export const NODES = ["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"] as const;
/** Its agent does not run. */
const BROKEN_NODE = "node-4";

/** Namespace, application, kind of its owner, pods. */
const APPLICATIONS: readonly (readonly [string, string, "Deployment" | "StatefulSet", number])[] = [
  ["shop", "web", "Deployment", 6],
  ["shop", "cart", "Deployment", 4],
  ["shop", "checkout", "Deployment", 4],
  ["shop", "db", "StatefulSet", 1],
  ["payments", "gateway", "Deployment", 3],
  ["payments", "ledger", "StatefulSet", 1],
  ["monitoring", "prometheus", "StatefulSet", 1],
  ["monitoring", "grafana", "Deployment", 1],
];

export const PODS: readonly ShopPod[] = APPLICATIONS.flatMap(([namespace, app, kind, count]) =>
  Array.from({ length: count }, (_, index) => ({ namespace, app, kind, index })),
).map(({ namespace, app, kind, index }, place) => {
  const node = NODES[place % NODES.length] ?? NODES[0];
  const letters = `${(place * 7_919 + 46_655).toString(36)}${(place * 104_729).toString(36)}`.slice(0, 5);
  return {
    ...{ namespace, app, node, owner: { kind, name: app } },
    name: kind === "StatefulSet" ? `${app}-${index}` : `${app}-6d4cf56db6-${letters}`,
    address: `10.44.${place % NODES.length}.${4 + Math.floor(place / NODES.length)}`,
  };
});

const POLICIES: Readonly<Record<string, Partial<NetworkPolicySpec>>> = {
  "shop/db": {
    ...{ tier: "default", order: 100, selector: "app == 'db'", types: ["Ingress"] },
    ingress: [
      {
        ...{ action: "Allow", protocol: "TCP", destination: { ports: [5432] } },
        source: { selector: "app in {'cart', 'checkout'}" },
      },
      { action: "Deny" },
    ],
  },
  "payments/gateway": {
    ...{ tier: "default", order: 100, selector: "app == 'gateway'", types: ["Ingress"] },
    ingress: [
      {
        ...{ action: "Allow", protocol: "TCP", destination: { ports: [8443] } },
        source: { selector: "app == 'checkout'", namespaceSelector: `${labelPrefix}name == 'shop'` },
      },
    ],
  },
  "payments/ledger": {
    ...{ tier: "default", order: 100, selector: "app == 'ledger'", types: ["Ingress"] },
    ingress: [
      {
        ...{ action: "Allow", protocol: "TCP", destination: { ports: [9000] } },
        source: { selector: "app == 'gateway'" },
      },
    ],
  },
};

interface Put {
  readonly kind: "put";
  readonly key: string;
  readonly value: string;
}

export function shopRecords(now: number): readonly Put[] {
  const blocks = NODES.flatMap((_, index) => blocksOf(index, now));
  return [
    ...poolRecords(),
    ...NODES.map((name, index) => nodeRecord(name, index)),
    ...blocks.flatMap(recordsOf),
    ...PODS.map(endpointRecord),
    ...blocks.flatMap(endpointsOfOthers),
    ...["shop", "payments", "monitoring"].map(profileRecord),
    networkRecord(),
    ...Object.entries(POLICIES).map(([title, spec]) => policyRecord(title, spec)),
    reservation(),
  ];
}

function poolRecords(): readonly Put[] {
  const specs = {
    pods: { cidr: "10.44.0.0/21", vxlanMode: "CrossSubnet", natOutgoing: true, blockSize: 26 },
    edge: { cidr: "10.60.0.0/26", blockSize: 28, nodeSelector: "zone == 'edge'" },
    former: { cidr: "10.80.0.0/22", disabled: true, ipipMode: "Always" },
  };
  const apiVersion = POOL.codec.make({ name: "any" }, { cidr: "10.0.0.0/24" } as never).apiVersion;
  return Object.entries(specs).map(([name, spec]) => {
    const pool = POOL.codec.readObject({ apiVersion, kind: "IPPool", metadata: { name }, spec }, name);
    return { kind: "put", key: POOL.key({ name }), value: POOL.codec.write(pool) };
  });
}

function reservation(): Put {
  const change = reservationChange("routers", ["10.44.0.0/30", "10.60.0.48/28"]);
  if (change.kind !== "put") throw new Error("The reservation is not a record");
  return { kind: "put", key: change.key, value: change.value };
}

function nodeRecord(name: string, index: number): Put {
  const address = `192.0.2.${11 + index}`;
  const value = NODE.codec.make(
    {
      name,
      labels: { zone: index < 4 ? "inner" : "edge" },
      annotations: { [`${identity.labelPrefix}agent-version`]: RELEASE },
    },
    {
      bgp: { ipv4Address: `${address}/24`, asNumber: 64_512 },
      addresses: [{ address, type: "InternalIP" }],
      ipv4VXLANTunnelAddr: `10.44.${index}.1`,
    },
  );
  return { kind: "put", key: NODE.key({ name }), value: NODE.codec.write(value) };
}

/** Several blocks for each node, younger ones among them; leaks, borrowed addresses, and such as were just released. */
function blocksOf(index: number, now: number): readonly IPAMBlock[] {
  const node = NODES[index] ?? "";
  const own = PODS.filter((pod) => pod.node === node);
  const first = emptyBlock(prefix(`10.44.${index}.0/26`), hostAffinity(node), nanoseconds(now - 60 * DAY));
  const tunnel = assigned(first, `10.44.${index}.1`, `vxlan-tunnel-addr-${node}`, {
    ...{ node, type: "vxlanTunnelAddress", timestamp: new Date(now - 60 * DAY).toISOString() },
  });
  const withPods = own.reduce((block, pod, place) => {
    const { name, namespace, address } = pod;
    const timestamp = new Date(now - (place + 1) * 7 * 61 * MINUTE - index * 3 * MINUTE).toISOString();
    return assigned(block, address, handleOf(pod), { node, pod: name, namespace, timestamp });
  }, tunnel);
  const others = Array.from({ length: 3 }, (_, block) => fullerBlock({ index, block, now }));
  const edge = index < 4 ? [] : [edgeBlock(index, now)];
  return [withPods, ...others.map((block, place) => (place === 1 ? irregular(block, index, now) : block)), ...edge];
}

/** Other people's pods. */
function fullerBlock({ index, block, now }: { index: number; block: number; now: number }): IPAMBlock {
  const node = NODES[index] ?? "";
  const cidr = prefix(`10.44.${index}.${64 * (block + 1)}/26`);
  const created = now - (18 - 5 * block + index) * DAY;
  const count = [61, 47, 22][block] ?? 0;
  let filled = emptyBlock(cidr, hostAffinity(node), nanoseconds(created));
  for (let ordinal = 0; ordinal < count - index; ordinal++) {
    const name = `worker-${index}${block}-${ordinal}`;
    const timestamp = new Date(created + ordinal * 11 * MINUTE).toISOString();
    const borrower = block === 1 && ordinal % 19 === 3 ? (NODES[(index + 1) % NODES.length] ?? node) : node;
    const owner = { node: borrower, pod: name, namespace: "batch", timestamp };
    const address = `10.44.${index}.${64 * (block + 1) + ordinal}`;
    filled = assigned(filled, address, `${product}.${name}`, owner);
  }
  return block === 0 ? filled : releaseOrdinals(filled, [5, 9, 14, 15], new Date(now - 40_000));
}

/** Of pods that nothing else is known of; none of what has ended. */
function endpointsOfOthers(block: IPAMBlock): readonly Put[] {
  return block.allocations.flatMap((index, ordinal) => {
    const {
      pod,
      namespace = "",
      node = "",
    } = (index === undefined ? undefined : block.attributes[index]?.secondary) ?? {};
    const isKnown = pod === undefined || pod.startsWith(ENDED) || PODS.some(({ name }) => name === pod);
    if (isKnown) return [];
    const address = formatAddress(addressAt(block, ordinal));
    return [endpointRecord({ namespace, app: pod, name: pod, node, address })];
  });
}

const ENDED = "report-";
const NETWORK = "pods-network";

/** Two leaks. */
function irregular(block: IPAMBlock, index: number, now: number): IPAMBlock {
  if (index !== 2) return block;
  const node = NODES[index] ?? "";
  const timestamp = new Date(now - 3 * DAY).toISOString();
  return [`${ENDED}28831`, `${ENDED}28832`].reduce(
    (filled, pod, place) =>
      assigned(filled, `10.44.${index}.${178 + place}`, `${product}.${pod}`, {
        node,
        pod,
        namespace: "batch",
        network: NETWORK,
        timestamp,
      }),
    block,
  );
}

function edgeBlock(index: number, now: number): IPAMBlock {
  const node = NODES[index] ?? "";
  let block = emptyBlock(prefix(`10.60.0.${16 * (index - 4)}/28`), hostAffinity(node), nanoseconds(now - 40 * DAY));
  for (let ordinal = 0; ordinal < 16; ordinal++) {
    const [name, timestamp] = [`proxy-${index}-${ordinal}`, new Date(now - 30 * DAY).toISOString()];
    const address = `10.60.0.${16 * (index - 4) + ordinal}`;
    block = assigned(block, address, `${product}.${name}`, { node, pod: name, namespace: "edge", timestamp });
  }
  return block;
}

function assigned(
  block: IPAMBlock,
  address: string,
  handleId: string,
  secondary: Readonly<Record<string, string>>,
): IPAMBlock {
  const parsed = parseAddress(address);
  const ordinal = parsed && ordinalIn(block, parsed);
  if (ordinal === undefined) throw new Error(`${address} is not in the block`);
  return assignOrdinal(block, ordinal, { handleId, secondary })?.block ?? block;
}

function recordsOf(block: IPAMBlock): readonly Put[] {
  const handles = Map.groupBy(block.attributes, ({ handleId }) => handleId ?? "");
  const cidr =
    blockKey(block.cidr)
      .split("/")
      .at(-1)
      ?.replace(/-(\d+)$/, "/$1") ?? "";
  const node = affineNode(block) ?? "";
  const borrowers = new Set(
    block.attributes.map(({ secondary }) => secondary["node"] ?? node).filter((each) => each !== node),
  );
  const affinity = writeAffinity({ state: "confirmed", deleted: false });
  return [
    { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) },
    { kind: "put", key: affinityKey(node, block.cidr), value: affinity },
    ...Array.from(borrowers, (each): Put => ({ kind: "put", key: borrowedKey(each, block.cidr), value: "{}" })),
    ...[...handles].map(([handle, { length }]): Put => {
      return {
        kind: "put",
        key: handleKey(handle),
        value: writeHandle({ blocks: { [cidr]: length }, deleted: false }),
      };
    }),
  ];
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds)) * 1_000_000n;
}

function handleOf({ namespace, name }: ShopPod): string {
  return `${product}.${new Bun.CryptoHasher("sha256").update(`${namespace}/${name}`).digest("hex")}`;
}

function endpointRecord(pod: Omit<ShopPod, "owner">): Put {
  const { namespace, app, name, node, address } = pod;
  const named = workloadEndpointName({ node, orchestrator: "k8s", workload: name, endpoint: "eth0" });
  if (!named.ok) throw new Error(named.reason);
  const value = ENDPOINT.codec.make(
    { name: named.name, namespace, labels: endpointLabels({ app }, { namespace, orchestrator: "k8s" }) },
    {
      ...{ node, orchestrator: "k8s", endpoint: "eth0", pod: name },
      ...{ ipNetworks: [`${address}/32`], profiles: [`kns.${namespace}`] },
    },
  );
  return { kind: "put", key: ENDPOINT.key({ name: named.name, namespace }), value: ENDPOINT.codec.write(value) };
}

function profileRecord(namespace: string): Put {
  const name = `kns.${namespace}`;
  const value = PROFILE.codec.make(
    { name },
    {
      ...{ ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] },
      labelsToApply: { [`pcns.${labelPrefix}name`]: namespace },
    },
  );
  return { kind: "put", key: PROFILE.key({ name }), value: PROFILE.codec.write(value) };
}

/** As the plugin writes it: without endpoints, addresses of this network are leaked. */
function networkRecord(): Put {
  const value = PROFILE.codec.make({ name: NETWORK }, networkProfileSpec(NETWORK));
  return { kind: "put", key: PROFILE.key({ name: NETWORK }), value: PROFILE.codec.write(value) };
}

function policyRecord(title: string, spec: Partial<NetworkPolicySpec>): Put {
  const [namespace = "", name = ""] = title.split("/");
  const value = NETWORK_POLICY.codec.make({ name, namespace }, { tier: "default", ...spec });
  return { kind: "put", key: NETWORK_POLICY.key({ name, namespace }), value: NETWORK_POLICY.codec.write(value) };
}

/** Objects of Kubernetes, each with the collection that it is in. */
export function shopObjects(now: number): readonly (readonly [collection: string, object: object])[] {
  const heard = new Date(now - 12_000).toISOString();
  const daemonSet = { desiredNumberScheduled: NODES.length, numberReady: NODES.length - 1 };
  const running = { readyReplicas: 1, updatedReplicas: 1 };
  const ready = { status: { conditions: [condition("Ready", "True")] } };
  const agents = { ...daemonSet, updatedNumberScheduled: NODES.length };
  return [
    ...["shop", "payments", "monitoring", "batch", "edge"].map(
      (name) => ["/api/v1/namespaces", { metadata: { name } }] as const,
    ),
    ...NODES.map((name, index) => ["/api/v1/nodes", nodeObject(name, index, heard)] as const),
    [`/apis/apps/v1/namespaces/${SYSTEM}/daemonsets`, workload(nodeAgent, agents)],
    [`/apis/apps/v1/namespaces/${SYSTEM}/deployments`, workload(controllers, running)],
    [`/apis/apps/v1/namespaces/${operator}/deployments`, workload(operator, running)],
    [`/apis/${apiVersionOf(OPERATOR_API)}/installations`, { metadata: { name: "default" }, ...ready }],
    ...NODES.map((node) => [`/api/v1/namespaces/${SYSTEM}/pods`, agentPod(node)] as const),
  ];
}

function condition(type: string, status: "True" | "False", message = ""): object {
  return { type, status, reason: "", message };
}

function nodeObject(name: string, index: number, lastHeartbeatTime: string): object {
  const conditions = [{ ...condition("Ready", "True"), lastHeartbeatTime }];
  const addresses = [{ type: "InternalIP", address: `192.0.2.${11 + index}` }];
  return { metadata: { name }, status: { conditions, addresses } };
}

function workload(name: string, status: object): object {
  const template = { spec: { containers: [{ image: `registry.example/${product}:${RELEASE}` }] } };
  return { metadata: { name, namespace: SYSTEM }, spec: { replicas: 1, template }, status };
}

function agentPod(node: string): object {
  const isBroken = node === BROKEN_NODE;
  const waiting = { reason: "CrashLoopBackOff", message: "back-off 2m40s restarting failed container" };
  return {
    metadata: {
      ...{ name: `${nodeAgent}-${node.replace("node-", "x4k")}q`, namespace: SYSTEM },
      labels: { "app.kubernetes.io/name": nodeAgent },
    },
    spec: { nodeName: node, hostNetwork: true, containers: [{ image: `registry.example/${product}:${RELEASE}` }] },
    status: {
      ...{ phase: "Running", podIPs: [{ ip: "192.0.2.1" }] },
      conditions: [condition("Ready", isBroken ? "False" : "True")],
      containerStatuses: [
        isBroken ? { restartCount: 7, ready: false, state: { waiting } } : { restartCount: 0, ready: true },
      ],
    },
  };
}
