/** A cluster on etcd whose nodes have other names than in the orchestrator, with pods that have addresses. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { API_VERSION } from "../../src/identity.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { means, request, textsOf } from "./ipam.ts";

const NODE_NAMES = { Host_One: "one", "host-two": "two" } as const;
const [FIRST, SECOND] = ["Host_One", "host-two"] as const;

export function resourceValue(kind: string, name: string, spec: object, more: object = {}): string {
  const metadata = {
    name,
    uid: "00000000-0000-4000-8000-000000000000",
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...more,
  };
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
}

/** Every field about flows, each with another value than by default. */
export const FLOW_SETTINGS = {
  ...{ flows: "Enabled", flowHistoryAge: "48h", flowHistoryMegabytes: 50, flowLogFile: "/var/log/flows.json" },
  ...{ flowsPerSecond: 700, flowDeniedPerSecond: 20 },
} as const;

/** Returns the address of each pod, by its handle. */
export async function fillEtcd(store: Datastore, pods = 12): Promise<ReadonlyMap<string, string>> {
  const put = async (plural: string, kind: string, name: string, spec: object, more: { namespace?: string } = {}) => {
    const key = resourceKey(plural, { name, ...more });
    await store.commit([{ kind: "create", key, value: resourceValue(kind, name, spec, more) }]);
  };
  const version = { vendorVersion: "v3.29.0", clusterGUID: "0123456789abcdef0123456789abcdef", datastoreReady: true };
  await put("clusterinformations", "ClusterInformation", "default", version);
  // Three blocks of eight: nodes borrow from each other.
  await put("ippools", "IPPool", "pods", { cidr: "10.10.0.0/27", blockSize: 29 });
  await put("ippools", "IPPool", "tenant", { cidr: "10.20.0.0/27", namespaceSelector: "tenant == 'a'" });
  await put("ipaddresslists", "IPAddressList", "web", { addresses: ["10.10.0.9"], namespaceSelector: "all()" });
  for (const [name, nodeName] of Object.entries(NODE_NAMES)) {
    const bgp = { ipv4Address: name === FIRST ? "192.0.2.1/24" : "192.0.2.2/24" };
    await put("nodes", "Node", name, { bgp, orchRefs: [{ orchestrator: "k8s", nodeName }] });
  }
  await put("nodeagentconfigurations", "NodeAgentConfiguration", `node.${FIRST}`, {
    routing: "Disabled",
    ...FLOW_SETTINGS,
  });
  await put("hostendpoints", "HostEndpoint", "one-all", { node: FIRST, interfaceName: "*" });
  await put("bgppeers", "BGPPeer", "peer", { node: SECOND, peerIP: "192.0.2.9", asNumber: 64512 });
  await put("globalnetworkpolicies", "GlobalNetworkPolicy", "allow", { selector: "all()", types: ["Ingress"] });
  await put("globalnetworkpolicies", "GlobalNetworkPolicy", "kcnp.theirs", { tier: "kube-admin", selector: "all()" });
  await put("networkpolicies", "NetworkPolicy", "mine", { selector: "all()" }, { namespace: "shop" });
  const deletion = { stagedAction: "Delete", tier: "default" };
  await put("stagednetworkpolicies", "StagedNetworkPolicy", "mine", deletion, { namespace: "shop" });
  await put("stagedglobalnetworkpolicies", "StagedGlobalNetworkPolicy", "deny", { selector: "all()" });
  const web = { podSelector: { matchLabels: { app: "web" } } };
  await put("stagedkubernetesnetworkpolicies", "StagedKubernetesNetworkPolicy", "web", web, { namespace: "shop" });
  await put("networkpolicies", "NetworkPolicy", "knp.default.theirs", { selector: "all()" }, { namespace: "shop" });
  await put("profiles", "Profile", "kns.shop", {});
  await put("profiles", "Profile", "by-hand", {});
  await put("containerlabels", "ContainerLabels", "network.pods", { network: "pods", labels: { tier: "a" } });
  const allocator = openAllocator(store, means());
  const addresses = new Map<string, string>();
  for (let index = 0; index < pods; index += 1) {
    const node = index < pods - 2 ? FIRST : SECOND;
    const assigned = await allocator.assign(
      request(`pods.container-${index}`, { node, attributes: { pod: `p${index}` } }),
    );
    addresses.set(`pods.container-${index}`, textsOf(assigned)[0] ?? "");
  }
  const tunnel = await allocator.assign(
    request(`vxlan-tunnel-addr-${FIRST}`, {
      node: FIRST,
      intendedUse: "Tunnel",
      attributes: { type: "vxlanTunnelAddress" },
    }),
  );
  addresses.set("vxlan-tunnel-addr-one", textsOf(tunnel)[0] ?? "");
  // The one that was free for the longest time is next: its order has to be kept.
  await allocator.releaseHandle(request("pods.container-3", { node: FIRST }));
  addresses.delete("pods.container-3");
  return addresses;
}
