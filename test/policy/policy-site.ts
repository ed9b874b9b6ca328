/**
 * A private host whose network namespaces are pods of several Kubernetes namespaces, made by the built plugin, with the
 * built node agent, one host outside the cluster, and the records that the controllers of a cluster would write.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { ENDPOINT, NETWORK_POLICY, NODE, PROFILE } from "../../src/model/kinds.ts";
import { type NetworkPolicySpec, networkPolicy } from "../../src/model/network-policy.ts";
import { node } from "../../src/model/node.ts";
import { profile } from "../../src/model/profile.ts";
import { type WorkloadEndpointSpec, workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import type { Host } from "../support/host.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { openReadableStore, type StoreKind, type TestStore } from "../support/test-store.ts";

const LABEL = identity.labelPrefix;
const HOST_ADDRESSES = ["192.0.2.1", "2001:db8::1"] as const;
const OUTSIDE_ADDRESSES = ["198.51.100.2", "2001:db8:1::2"] as const;

export type Labels = Readonly<Record<string, string>>;
export type Ports = NonNullable<WorkloadEndpointSpec["ports"]>;

/** A place that can send and receive packets. */
export interface End {
  /** `x/a` for a pod, `host`, or `outside`. */
  readonly name: string;
  /** Path of its network namespace. */
  readonly netns: string;
  /** IPv4, IPv6. */
  readonly addresses: readonly [string, string];
}

export interface PodEnd extends End {
  readonly pod: Pod;
}

export interface WrittenPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly spec: Omit<NetworkPolicySpec, "tier">;
}

export interface PolicySite extends AsyncDisposable {
  readonly site: PluginSite;
  readonly store: Datastore;
  readonly agent: Agent;
  readonly ends: ReadonlyMap<string, End>;
  addPod(name: string, labels?: Labels, ports?: Ports): Promise<PodEnd>;
  /** As the controllers do when somebody relabels a pod or a namespace. */
  labelPod(name: string, labels: Labels, ports?: Ports): Promise<void>;
  labelNamespace(name: string, labels: Labels): Promise<void>;
  /** Replaces all policies, and relabels the pods in the same commit. */
  setPolicies(policies: readonly WrittenPolicy[], relabelled?: ReadonlyMap<string, Labels>): Promise<void>;
  /** Until the kernel has everything that was written before, except large policies, which wait for their turn. */
  untilApplied(): Promise<void>;
}

export interface PolicySiteOptions {
  readonly node?: string;
  /** Embedded if absent. */
  readonly kind?: StoreKind;
  /** The datastore of another site, which must be closed later. */
  readonly sharedStore?: TestStore;
  /** A datastore of its own. */
  readonly openStore?: (host: Host) => Promise<TestStore>;
}

export async function openPolicySite({
  node: nodeName = "node-1",
  kind = "embedded",
  sharedStore,
  openStore = (host) => openReadableStore(host, kind),
}: PolicySiteOptions = {}): Promise<PolicySite> {
  const site = await openPluginSite(
    sharedStore === undefined ? openStore : async () => ({ ...sharedStore, close: async () => {} }),
  );
  const { host } = site;
  const config = site.config({ nodename: nodeName });
  const { datastore_path: path, etcd_endpoints: endpoint } = site.store.config;
  const store = await openDatastore(
    site.store.kind === "embedded"
      ? { kind: "embedded", path: String(path) }
      : { kind: "etcd", source: { kind: "endpoints", endpoints: [String(endpoint)] } },
  );
  const { name: network, cniVersion, ...plugin } = config;
  host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name: network, cniVersion, plugins: [plugin] }));
  const ends = new Map<string, End>([
    ["host", { name: "host", netns: host.netns, addresses: HOST_ADDRESSES }],
    ["outside", await connectOutside(site)],
  ]);
  let marks = 0;
  let written: readonly string[] = [];

  const put = async (...records: readonly { readonly key: string; readonly value: string }[]) => {
    await store.commit(records.map((record) => ({ kind: "put" as const, ...record })));
  };
  const remove = async (key: string) => {
    const { answers } = await store.read([{ kind: "key", key }]);
    await store.commit([{ kind: "delete", key, revision: answers[0]?.[0]?.revision ?? "" }]);
  };
  const labelNamespace: PolicySite["labelNamespace"] = (namespace, labels) => {
    const own = { ...labels, [`${LABEL}name`]: namespace };
    const labelsToApply = Object.fromEntries(Object.entries(own).map(([label, value]) => [`pcns.${label}`, value]));
    const allow = { ingress: [{ action: "Allow" as const }], egress: [{ action: "Allow" as const }] };
    const value = profile.write(profile.make({ name: `kns.${namespace}` }, { ...allow, labelsToApply }));
    return put({ key: PROFILE.key({ name: `kns.${namespace}` }), value });
  };
  const labelledPod = async (name: string, labels: Labels, ports?: Ports) => {
    const key = ENDPOINT.key(endpointName(nodeName, name));
    const { answers } = await store.read([{ kind: "key", key }]);
    const stored = workloadEndpoint.read(answers[0]?.[0]?.value ?? "", key);
    const { namespace = "" } = stored.metadata;
    const all = { ...labels, [`${LABEL}namespace`]: namespace, [`${LABEL}orchestrator`]: "k8s" };
    const spec = { ...stored.spec, profiles: [`kns.${namespace}`], ...(ports === undefined ? {} : { ports }) };
    const value = workloadEndpoint.write({ ...stored, metadata: { ...stored.metadata, labels: all }, spec });
    return { key, value };
  };
  const labelPod: PolicySite["labelPod"] = async (name, labels, ports) => put(await labelledPod(name, labels, ports));

  await put(nodeRecord(nodeName), markerRecord(nodeName));
  return {
    site,
    store,
    ends,
    agent: launchAgent(host),
    async addPod(name, labels = {}, ports) {
      const [namespace = "", own = ""] = name.split("/");
      const pod = await site.makePod({ args: `K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${own}` });
      await host.must(["ip", "-n", pod.netnsName, "link", "set", "lo", "up"]);
      const { ips } = await site.add(pod, { config });
      const [ipv4 = "", ipv6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
      const end: PodEnd = { name, pod, netns: host.view(pod.netns), addresses: [ipv4, ipv6] };
      ends.set(name, end);
      await labelPod(name, labels, ports);
      return end;
    },
    labelPod,
    labelNamespace,
    async setPolicies(policies, relabelled = new Map()) {
      const records = policies.map(({ namespace, name, spec }) => ({
        key: NETWORK_POLICY.key({ namespace, name }),
        value: networkPolicy.write(networkPolicy.make({ namespace, name }, { tier: "default", ...spec })),
      }));
      const kept = new Set(records.map(({ key }) => key));
      for (const key of written.filter((each) => !kept.has(each))) await remove(key);
      const pods = await Promise.all(Array.from(relabelled, ([name, labels]) => labelledPod(name, labels)));
      if (records.length + pods.length > 0) await put(...records, ...pods);
      written = [...kept];
    },
    async untilApplied() {
      marks += 1;
      await put(markRecord(marks));
      const comment = `${identity.product}-marks/mark ingress 0`;
      const port = `dport ${marks}`;
      await pollUntil(async () => {
        const { stdout } = await host.run(["nft", "list", "table", "inet", identity.policyTable]);
        return stdout.split("\n").some((line) => line.includes(comment) && line.includes(port));
      }, "the agent to write the rules");
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await site[Symbol.asyncDispose]();
    },
  };
}

function endpointName(nodeName: string, pod: string): { readonly namespace: string; readonly name: string } {
  const [namespace = "", own = ""] = pod.split("/");
  const named = workloadEndpointName({ node: nodeName, orchestrator: "k8s", workload: own, endpoint: "eth0" });
  if (!named.ok) throw new Error(named.reason);
  return { namespace, name: named.name };
}

function nodeRecord(nodeName: string) {
  const [ipv4, ipv6] = HOST_ADDRESSES;
  const spec = { bgp: { ipv4Address: `${ipv4}/32`, ipv6Address: `${ipv6}/128` } };
  return { key: NODE.key({ name: nodeName }), value: node.write(node.make({ name: nodeName }, spec)) };
}

const MARKS = `${identity.product}-marks`;

/** An endpoint without a link, so that a policy that selects it is in the kernel. */
function markerRecord(nodeName: string) {
  const metadata = { ...endpointName(nodeName, `${MARKS}/marker`), labels: { [`${LABEL}namespace`]: MARKS } };
  const spec = {
    ...{ orchestrator: "k8s", node: nodeName, pod: "marker", endpoint: "eth0", containerID: "marker" },
    ...{ ipNetworks: ["10.255.255.1/32"], interfaceName: `${identity.interfacePrefix}marker` },
  };
  return { key: ENDPOINT.key(metadata), value: workloadEndpoint.write(workloadEndpoint.make(metadata, spec)) };
}

/** Its port counts up: once the kernel has it, it has everything that was written before. */
function markRecord(port: number) {
  const metadata = { namespace: MARKS, name: "mark" };
  const ingress = [{ action: "Allow" as const, protocol: "TCP", destination: { ports: [port] } }];
  const value = networkPolicy.write(networkPolicy.make(metadata, { tier: "default", ingress }));
  return { key: NETWORK_POLICY.key(metadata), value };
}

async function connectOutside({ host }: PluginSite): Promise<End> {
  const inside = (...words: readonly string[]) => host.must(["ip", "-n", "vt-outside", ...words]);
  const [ipv4, ipv6] = OUTSIDE_ADDRESSES;
  await host.must(["ip", "netns", "add", "vt-outside"]);
  await host.must("ip link add out0 type veth peer name eth0 netns vt-outside".split(" "));
  await host.must("ip addr add 198.51.100.1/24 dev out0".split(" "));
  await host.must("ip addr add 2001:db8:1::1/64 dev out0 nodad".split(" "));
  await host.must("ip link set out0 up".split(" "));
  await inside("link", "set", "lo", "up");
  await inside("link", "set", "eth0", "up");
  await inside("addr", "add", `${ipv4}/24`, "dev", "eth0");
  await inside("addr", "add", `${ipv6}/64`, "dev", "eth0", "nodad");
  await inside("route", "add", "default", "via", "198.51.100.1");
  await inside("-6", "route", "add", "default", "via", "2001:db8:1::1");
  return { name: "outside", netns: host.view("/run/netns/vt-outside"), addresses: OUTSIDE_ADDRESSES };
}
