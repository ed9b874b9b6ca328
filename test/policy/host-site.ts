/**
 * A host with a pod and two interfaces of its own, whose host endpoints and global policies change from test to test.
 *
 *                     198.51.100.1          203.0.113.1
 *   outside  ────────────  out0   host   side0  ────────────  side        `published`: port 8080 of the host is port 80
 *   198.51.100.2                   │                203.0.113.2                        of the pod
 *                                 x/a
 */
import type { PublicKind } from "../../src/model/kinds.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NODE_AGENT_CONFIGURATION, PROFILE } from "../../src/model/kinds.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import type { Resource } from "../../src/model/resource.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type End, openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";

export const HOST_NODE = "node-1";
const PUBLISHED_PORT = 8080;
const HOST_ADDRESSES = ["198.51.100.1", "2001:db8:1::1"] as const;
const SIDE_ADDRESSES = ["203.0.113.2", "2001:db8:2::2"] as const;

export interface HostResources {
  readonly hostEndpoints?: readonly Resource[];
  readonly policies?: readonly Resource[];
  readonly profiles?: readonly Resource[];
  readonly configurations?: readonly Resource[];
}

export interface HostSite extends AsyncDisposable {
  readonly policies: PolicySite;
  readonly pod: PodEnd;
  end(name: string): End;
  /** Replaces all of them, and waits until the kernel has them. */
  apply(resources: HostResources): Promise<void>;
  /** Runs `ip` on the host. */
  ip(command: string): Promise<string>;
}

/** `flows`: whether the agent observes them. */
export async function openHostSite(flows: "Enabled" | "Disabled" = "Disabled"): Promise<HostSite> {
  const policies = await openPolicySite({ node: HOST_NODE });
  const { host } = policies.site;
  const ip = (command: string) => host.must(["ip", ...command.split(" ")]);
  await policies.labelNamespace("x", {});
  const pod = await policies.addPod("x/a");
  await publish(policies, pod);
  const ends = new Map([
    ...policies.ends,
    ["host", { name: "host", netns: host.netns, addresses: HOST_ADDRESSES }],
    ["side", await connectSide(policies, ip)],
    ["published", { ...pod, addresses: HOST_ADDRESSES }],
  ]);
  let written: readonly string[] = [];
  return {
    policies,
    pod,
    ip,
    end(name) {
      const end = ends.get(name);
      if (end === undefined) throw new Error(`no end "${name}"`);
      return end;
    },
    async apply({ hostEndpoints = [], policies: global = [], profiles = [], configurations = [] }) {
      const records = [
        ...recordsOf(PROFILE, profiles),
        ...recordsOf(GLOBAL_NETWORK_POLICY, global),
        ...recordsOf(NODE_AGENT_CONFIGURATION, [...configurations, ofAllNodes({ flows })]),
        ...recordsOf(HOST_ENDPOINT, hostEndpoints),
      ];
      const kept = new Set(records.map(({ key }) => key));
      for (const key of written.filter((each) => !kept.has(each))) await policies.site.store.remove(key);
      if (records.length > 0) await policies.store.commit(records);
      written = [...kept];
      await policies.untilApplied();
    },
    [Symbol.asyncDispose]: () => policies[Symbol.asyncDispose](),
  };
}

/** Beside the settings of a test, which are for this one. */
function ofAllNodes(spec: NodeAgentConfigurationSpec) {
  return nodeAgentConfiguration.make({ name: "default" }, spec);
}

function recordsOf({ key, codec }: PublicKind, resources: readonly Resource[]) {
  return resources.map((resource) => ({
    kind: "put" as const,
    key: key({ name: resource.metadata.name }),
    value: codec.write(resource),
  }));
}

async function connectSide({ site: { host } }: PolicySite, ip: HostSite["ip"]): Promise<End> {
  const [ipv4, ipv6] = SIDE_ADDRESSES;
  await ip("netns add vt-side");
  await ip("link add side0 type veth peer name eth0 netns vt-side");
  await ip("address add 203.0.113.1/24 dev side0");
  await ip("address add 2001:db8:2::1/64 dev side0 nodad");
  await ip("link set side0 up");
  await ip("-n vt-side link set lo up");
  await ip("-n vt-side link set eth0 up");
  await ip(`-n vt-side address add ${ipv4}/24 dev eth0`);
  await ip(`-n vt-side address add ${ipv6}/64 dev eth0 nodad`);
  await ip("-n vt-side route add default via 203.0.113.1");
  await ip("-n vt-side -6 route add default via 2001:db8:2::1");
  return { name: "side", netns: host.view("/run/netns/vt-side"), addresses: SIDE_ADDRESSES };
}

/** As a runtime does it after the network's own plugin. */
async function publish({ site: { host } }: PolicySite, { pod, addresses }: PodEnd): Promise<void> {
  const ips = addresses.map((address) => ({ address: `${address}/${address.includes(":") ? 128 : 32}`, interface: 0 }));
  const interfaces = [{ name: pod.ifname, sandbox: pod.netns }];
  const mapping = (protocol: string) => ({ hostPort: PUBLISHED_PORT, containerPort: 80, protocol });
  const config = {
    ...{ cniVersion: "1.1.0", name: "net", type: "portmap" },
    prevResult: { cniVersion: "1.1.0", interfaces, ips },
    runtimeConfig: { portMappings: [mapping("tcp"), mapping("udp")] },
  };
  await host.must([builtProgram("portmap")], {
    stdin: JSON.stringify(config),
    environment: {
      ...{ CNI_COMMAND: "ADD", CNI_CONTAINERID: pod.containerId, CNI_NETNS: pod.netns },
      ...{ CNI_IFNAME: pod.ifname, CNI_PATH: "/opt/cni/bin" },
    },
  });
}
