/** A guest as a node: the built node agent, pods that ADD connects, and the admin tool, on one etcd. */

import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { resource } from "../routing/resource.ts";
import { etcdCommand } from "../support/etcd-on-host.ts";
import type { Finished } from "../support/host.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import type { Guest } from "./guest.ts";

export interface NodePlan {
  readonly name: string;
  /** Of the datastore. */
  readonly endpoint: string;
}

export interface GuestPod {
  readonly name: string;
  readonly address: string;
}

export interface GuestNode {
  readonly guest: Guest;
  startAgent(): Promise<void>;
  admin(words: string, stdin?: string): Promise<string>;
  /** The addresses in the datastore. Exit code 1: there are problems. */
  check(...options: readonly string[]): Promise<Finished>;
  apply(...resources: readonly object[]): Promise<void>;
  addPod(name: string, more?: { readonly portMappings?: readonly object[] }): Promise<GuestPod>;
  removePod(pod: GuestPod): Promise<void>;
  /** Labels the endpoint of a pod. `label`: `role=client`. */
  label(pod: string, label: string): Promise<void>;
}

interface AddResult {
  readonly ips: readonly { readonly address: string }[];
}

interface EndpointList {
  readonly items: readonly { readonly metadata: { readonly name: string }; readonly spec: { readonly pod?: string } }[];
}

const PATIENCE_MILLISECONDS = 180_000;
const NAMESPACE = "guests";

export function openGuestNode(guest: Guest, { name, endpoint }: NodePlan): GuestNode {
  const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint };
  const plugin = {
    ...{ type: identity.product, nodename: name, etcd_endpoints: endpoint },
    ipam: { type: identity.ipamType },
  };
  const call = (command: "ADD" | "DEL", pod: string, stdin: object, program: string = identity.product) =>
    guest.must([builtProgram(program)], {
      stdin: JSON.stringify({ cniVersion: "1.0.0", name: "net", ...stdin }),
      environment: {
        ...{ CNI_COMMAND: command, CNI_CONTAINERID: `container-${pod}`, CNI_NETNS: `/run/netns/${pod}` },
        ...{
          CNI_IFNAME: "eth0",
          CNI_ARGS: `K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=${pod}`,
          CNI_PATH: "/opt/cni/bin",
        },
      },
    });
  /** A starved guest may exceed the limit of a request of the tool, which is not what is tested: it is asked again. */
  const ask = async (words: readonly string[], stdin?: string): Promise<Finished> => {
    const limit = performance.now() + PATIENCE_MILLISECONDS;
    for (;;) {
      const options = { environment, ...(stdin === undefined ? {} : { stdin }) };
      const outcome = await guest.run([builtProgram(identity.adminTool), ...words], options);
      if (!outcome.stderr.includes("no response within the time limit") || performance.now() > limit) return outcome;
    }
  };
  const admin: GuestNode["admin"] = async (words, stdin) => {
    const { code, stdout, stderr } = await ask(words.split(" "), stdin);
    if (code !== 0) throw new Error(`"${identity.adminTool} ${words}" ended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  return {
    guest,
    admin,
    check: (...options) => ask(["ipam", "check", ...options]),
    apply: async (...resources) =>
      void (await admin("apply -f -", resources.map((each) => JSON.stringify(each)).join("\n---\n"))),
    async startAgent() {
      const list = JSON.stringify({ cniVersion: "1.0.0", name: "net", plugins: [plugin] });
      await guest.must(
        ["sh", "-ec", "rm -rf /etc/cni/net.d; mkdir -p /etc/cni/net.d; cat >/etc/cni/net.d/10-net.conflist; sync"],
        { stdin: list },
      );
      const variables = Object.entries(NODE_ENVIRONMENT).map(([key, value]) => `${key}=${value}`);
      await guest.start(["env", ...variables, builtProgram(identity.nodeAgent)], "agent.log");
      const serves = async () =>
        (await guest.run(["grep", "-q", "serves the plugins' calls", "/run/guest/agent.log"])).code === 0;
      await pollUntil(serves, "the agent of the guest to serve", PATIENCE_MILLISECONDS);
    },
    async addPod(pod, { portMappings } = {}) {
      await guest.must(["sh", "-ec", `ip netns add ${pod}; ip -n ${pod} link set lo up`]);
      const result = JSON.parse(await call("ADD", pod, plugin)) as AddResult;
      const chained = { type: "portmap", snat: true, prevResult: result, runtimeConfig: { portMappings } };
      if (portMappings !== undefined) await call("ADD", pod, chained, "portmap");
      return { name: pod, address: result.ips[0]?.address.split("/")[0] ?? "" };
    },
    async label(pod, label) {
      const { items } = JSON.parse(await admin(`get workloadendpoint -n ${NAMESPACE} -o json`)) as EndpointList;
      const own = items.find(({ spec }) => spec.pod === pod)?.metadata.name ?? pod;
      await admin(`label workloadendpoint ${own} -n ${NAMESPACE} ${label}`);
    },
    async removePod({ name: pod }) {
      await call("DEL", pod, plugin);
      await guest.run(["ip", "netns", "delete", pod]);
    },
  };
}

async function startGuestEtcd(guest: Guest, endpoint: string, directory = "/run/etcd"): Promise<void> {
  await guest.start(etcdCommand(directory, endpoint), "etcd.log");
  const serves = async () => (await guest.run(["curl", "-sf", "-o", "/dev/null", `${endpoint}/health`])).code === 0;
  await pollUntil(serves, "etcd of the guest to serve", PATIENCE_MILLISECONDS);
}

/** The address of a node that is the only one. */
export const NODE_ADDRESS = "10.1.1.1";
const ALONE = { name: "node", endpoint: "http://127.0.0.1:2379" };

/** A node that is the only one, with its own etcd, a pool and an agent. */
export async function startGuestNode(guest: Guest, dataDirectory?: string): Promise<GuestNode> {
  await addLink(guest);
  await startGuestEtcd(guest, ALONE.endpoint, dataDirectory);
  const node = openGuestNode(guest, ALONE);
  await node.admin("datastore init");
  await node.apply(resource("IPPool", "pool", { cidr: "10.50.0.0/16" }), resource("Node", ALONE.name, {}));
  await node.startAgent();
  return node;
}

/** The same node after another boot: its etcd has everything, and its agent is not started yet. */
export async function continueGuestNode(guest: Guest, dataDirectory: string): Promise<GuestNode> {
  await addLink(guest);
  await startGuestEtcd(guest, ALONE.endpoint, dataDirectory);
  return openGuestNode(guest, ALONE);
}

async function addLink(guest: Guest): Promise<void> {
  const script = `ip link add eth0 type dummy; ip address add ${NODE_ADDRESS}/24 dev eth0; ip link set eth0 up
    ip route add default via 10.1.1.254; echo 1 >/proc/sys/net/ipv4/ip_forward`;
  await guest.must(["sh", "-ec", script]);
}
