/**
 * A private host with an API server in its network, our resources, a pool of each
 * family, and the built plugin under its own role: calls of a runtime for pods that
 * exist in the API.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { type Finished, type Host, openHost } from "./host.ts";
import { type ApiServer, type ApiServerPlan, startApiServer } from "./kube-apiserver.ts";
import { installCrds } from "./kube-crds.ts";
import { builtProgram } from "./run-plugin.ts";

type Json = Readonly<Record<string, unknown>>;

export interface KubePod {
  readonly namespace: string;
  readonly name: string;
  readonly containerId: string;
  readonly netnsName: string;
  readonly netns: string;
  readonly uid: string;
}

export interface KubeSite extends AsyncDisposable {
  readonly host: Host;
  readonly server: ApiServer;
  /** The path of the plugin. */
  readonly program: string;
  /** The user whose requests the audit log shows. */
  readonly user: string;
  config(more?: Json): Json;
  /** Creates the pod in the API, and a namespace on the host as its sandbox. */
  makePod(
    name: string,
    more?: { readonly namespace?: string; readonly metadata?: Json; readonly spec?: Json },
  ): Promise<KubePod>;
  /** A new sandbox of the same pod. */
  newSandbox(pod: KubePod): Promise<KubePod>;
  call(command: "ADD" | "DEL" | "CHECK" | "STATUS" | "GC", pod: KubePod, config?: Json): Promise<Finished>;
  /** ADD that must succeed; returns the addresses. */
  add(pod: KubePod, config?: Json): Promise<readonly string[]>;
  del(pod: KubePod, config?: Json): Promise<void>;
  /** The admin tool as the administrator of the cluster; returns what it printed. */
  admin(args: readonly string[], stdin?: string): Promise<string>;
}

export const NODE = "node-1";
export const NAMESPACE = "red";

export async function openKubeSite(plan: ApiServerPlan = {}): Promise<KubeSite> {
  const host = await openHost();
  await host.must(["ip", "addr", "add", "192.0.2.1/32", "dev", "lo"]);
  await host.must(["ip", "addr", "add", "2001:db8::1/128", "dev", "lo"]);
  const server = await startApiServer({ ...plan, place: { netns: host.netns, address: "127.0.0.1" } });
  await installCrds(server);
  await server.apply(readFileSync(join(import.meta.dir, "../../deploy/rbac/vendor-kubernetes.yaml"), "utf8"));
  const { kubeconfig, user } = await server.serviceAccount({
    name: identity.product,
    clusterRole: `${identity.product}-kubernetes`,
  });
  await server.createNamespace(NAMESPACE);
  await server.apply(
    JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: NODE, labels: { zone: "a" } } }),
  );

  let sandboxes = 0;
  const sandbox = async () => {
    sandboxes += 1;
    const netnsName = `vt-pod${sandboxes}`;
    await host.must(["ip", "netns", "add", netnsName]);
    const containerId = new Bun.CryptoHasher("sha256").update(`${host.name}/${sandboxes}`).digest("hex");
    return { containerId, netnsName, netns: `/run/netns/${netnsName}` };
  };
  const config = (more: Json = {}): Json => ({
    cniVersion: "1.1.0",
    name: "net",
    type: identity.product,
    nodename: NODE,
    datastore_type: "kubernetes",
    kubernetes: { kubeconfig },
    ipam: { type: identity.ipamType },
    ...more,
  });
  const call: KubeSite["call"] = (command, pod, given = config()) =>
    host.run([builtProgram()], {
      stdin: JSON.stringify(given),
      environment: {
        CNI_COMMAND: command,
        CNI_CONTAINERID: pod.containerId,
        CNI_NETNS: pod.netns,
        CNI_IFNAME: "eth0",
        CNI_PATH: dirname(builtProgram()),
        CNI_ARGS: `K8S_POD_NAMESPACE=${pod.namespace};K8S_POD_NAME=${pod.name};K8S_POD_UID=${pod.uid};K8S_POD_INFRA_CONTAINER_ID=${pod.containerId}`,
      },
    });
  const admin: KubeSite["admin"] = (args, stdin) =>
    host.must([builtProgram(identity.adminTool), ...args], {
      environment: { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig },
      ...(stdin === undefined ? {} : { stdin }),
    });
  await admin(["datastore", "init"]);
  await admin(["apply", "-f", "-"], `${pool("four", "10.60.0.0/16")}---\n${pool("six", "fd60::/64")}`);

  return {
    host,
    server,
    program: builtProgram(),
    user,
    config,
    call,
    admin,
    async makePod(name, more = {}) {
      const { namespace = NAMESPACE } = more;
      const metadata = { name, namespace, ...more.metadata };
      const spec = { nodeName: NODE, containers: [{ name: "main", image: "none" }], ...more.spec };
      await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
      const made = await server.get<{ metadata: { uid: string } }>("pod", name, `--namespace=${namespace}`);
      return { namespace, name, uid: made.metadata.uid, ...(await sandbox()) };
    },
    newSandbox: async (pod) => ({ ...pod, ...(await sandbox()) }),
    async add(pod, given) {
      const { code, stdout, stderr } = await call("ADD", pod, given);
      if (code !== 0) throw new Error(`ADD failed with ${code}: ${stdout}${stderr}`);
      return (JSON.parse(stdout) as { ips: { address: string }[] }).ips.map(({ address }) => address);
    },
    async del(pod, given) {
      const { code, stdout, stderr } = await call("DEL", pod, given);
      if (code !== 0) throw new Error(`DEL failed with ${code}: ${stdout}${stderr}`);
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await host[Symbol.asyncDispose]();
    },
  };
}

function pool(name: string, cidr: string): string {
  return `apiVersion: ${identity.apiGroup}/v3\nkind: IPPool\nmetadata: { name: ${name} }\nspec: { cidr: "${cidr}" }\n`;
}
