/** kubectl changes policies and labels; the controllers copy them to etcd; the node agent enforces them on packets. */
import { expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { startAgent } from "../agent/agent.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import type { TestStore } from "../support/test-store.ts";
import { type EtcdSite, namesOf } from "./etcd-site.ts";

const NAMESPACE = "packets";
const PORT = 8080;
const PATIENCE_MILLISECONDS = 100;

interface AttachedPod {
  readonly netns: string;
  readonly addresses: readonly string[];
}

/** On the calm etcd, whose controllers run. */
export async function enforceOnPackets({ server, calm }: EtcdSite): Promise<void> {
  await using site = await openPluginSite(async (host): Promise<TestStore> => {
    const relay = await server.relayInto(host.netns);
    const access = { etcd_endpoints: calm.endpoint, kubernetes: { kubeconfig: server.adminKubeconfig } };
    return {
      kind: "etcd",
      config: { ...access, policy: { type: "k8s" } },
      put: async (changes) => void (await calm.store.commit(changes)),
      remove: async () => {},
      list: async () => new Map(),
      close: async () => relay[Symbol.dispose](),
    };
  });
  const { name, cniVersion, ...plugin } = site.config();
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  await startAgent(site.host);
  const table = () => site.host.run(["nft", `list table inet ${identity.policyTable}`]);
  await pollUntil(async () => (await table()).code === 0, "the agent to write its table");

  await server.createNamespace(NAMESPACE);
  const kubectl = (...args: readonly string[]) => server.kubectl([...args, `--namespace=${NAMESPACE}`]);
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } }));
  const attach = async (pod: string): Promise<AttachedPod> => {
    const metadata = { name: pod, namespace: NAMESPACE, labels: { app: pod } };
    const ports = [{ name: "http", containerPort: PORT }];
    const spec = { nodeName: "node-1", containers: [{ name: "main", image: "none", ports }] };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
    return await attachPod(site, pod);
  };
  const [web, client] = [await attach("web"), await attach("client")];
  using _ = serveTcp(web.netns, "web", PORT);
  const becomes = (expected: "open" | "closed", after: string) =>
    pollUntil(async () => (await reach(client, web)) === expected, `the port to be ${expected} after ${after}`);
  await becomes("open", "the start");

  const from = [{ podSelector: { matchLabels: { app: "client" } } }];
  const policy = (ingress: readonly object[]) =>
    server.apply(
      JSON.stringify({
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name: "web", namespace: NAMESPACE },
        spec: { podSelector: { matchLabels: { app: "web" } }, policyTypes: ["Ingress"], ingress },
      }),
    );
  await policy([]);
  await becomes("closed", "a policy that allows nothing");
  await policy([{ from, ports: [{ port: "http" }] }]);
  await becomes("open", "a policy that allows the named port to the client");
  await kubectl("label", "pod", "client", "app=other", "--overwrite");
  await becomes("closed", "another label of the client");
  await server.kubectl(["label", "namespace", NAMESPACE, "team=a"]);
  await policy([{ from: [{ namespaceSelector: { matchLabels: { team: "a" } } }] }]);
  await becomes("open", "a policy for the label of the namespace");
  await server.kubectl(["label", "namespace", NAMESPACE, "team-"]);
  await becomes("closed", "the removed label of the namespace");
  await kubectl("delete", "networkpolicy", "web");
  await becomes("open", "the deletion of the policy");
  expect((await namesOf(calm.store, "networkpolicies")).filter((each) => each.includes("web"))).toEqual([]);
}

async function attachPod(site: PluginSite, name: string): Promise<AttachedPod> {
  const pod = await site.makePod({ args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=${name}` });
  const { ips } = await site.add(pod);
  return { netns: site.host.view(pod.netns), addresses: ips.map(({ address }) => address.split("/")[0] ?? "") };
}

/** Both families. */
async function reach(from: AttachedPod, to: AttachedPod): Promise<string> {
  const ask = async (address: string) => {
    const reply = await askTcpWithin(PATIENCE_MILLISECONDS, from.netns, address, PORT);
    return reply.startsWith("web ") ? "open" : "closed";
  };
  return [...new Set(await Promise.all(to.addresses.map(ask)))].join();
}
