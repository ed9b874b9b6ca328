/** The product and its peer on one API server: each candidate has its own node, namespace, pods and user. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import type { Host } from "../../test/support/host.ts";
import type { ApiServer } from "../../test/support/kube-apiserver.ts";
import { installCrds } from "../../test/support/kube-crds.ts";
import { preparePeerOnKube } from "./peer-calico-kube.ts";
import type { MeasuredPlugin } from "./plugin-candidate.ts";

/** A plugin whose requests the audit log shows under this user. */
export interface KubePlugin extends MeasuredPlugin {
  readonly user: string;
}

const ROLE_NAME = `${identity.product}-kubernetes`;
const ROLE_FILE = join(import.meta.dir, "../../deploy/rbac", `${ROLE_NAME}.yaml`);

/** Nothing if the peer cannot be built here. */
export async function preparePeer(server: ApiServer, pods: number): Promise<readonly KubePlugin[]> {
  const node = "peer";
  const attachments = await makeKubePods(server, node, pods);
  const peer = await preparePeerOnKube(server, { cidr: "10.99.0.0/16", node });
  if ("missing" in peer) {
    console.log(`skipped: ${peer.missing}`);
    return [];
  }
  const { pluginDirectory: path, config, user } = peer;
  return [{ name: "Calico 3.31.0", program: join(path, "calico"), path, config, user, cniArguments: attachments }];
}

/** Our resources, role and pools; once per API server. */
export async function prepareOwnResources(
  { host, server, folder }: { readonly host: Host; readonly server: ApiServer; readonly folder: string },
  pools: Readonly<Record<string, string>>,
): Promise<void> {
  await installCrds(server);
  await server.apply(readFileSync(ROLE_FILE, "utf8"));
  const admin = join(folder, identity.adminTool);
  const environment = { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig };
  await host.must([admin, "datastore", "init"], { environment });
  const apiVersion = `${identity.apiGroup}/v3`;
  const resources = Object.entries(pools).map(([name, cidr]) =>
    JSON.stringify({ apiVersion, kind: "IPPool", metadata: { name }, spec: { cidr } }),
  );
  await host.must([admin, "apply", "-f", "-"], { environment, stdin: resources.join("\n---\n") });
}

export async function prepareOwn(
  server: ApiServer,
  { title, node, folder, pods }: { title: string; node: string; folder: string; pods: number },
): Promise<KubePlugin> {
  const cniArguments = await makeKubePods(server, node, pods);
  const { config, user } = await ownConfig(server, node);
  return {
    name: title,
    program: join(folder, identity.product),
    path: folder,
    config: JSON.stringify({ ...config, cniVersion: "1.0.0", name: node, log_level: "ERROR" }),
    user,
    cniArguments,
  };
}

/** The plugin's part of a network config for this node, under a user of its own with the deployed role. */
export async function ownConfig(
  server: ApiServer,
  node: string,
): Promise<{ readonly config: Readonly<Record<string, unknown>>; readonly user: string }> {
  const { kubeconfig, user } = await server.serviceAccount({ name: node, clusterRole: ROLE_NAME });
  return {
    user,
    config: {
      type: identity.product,
      nodename: node,
      datastore_type: "kubernetes",
      policy: { type: "k8s" },
      kubernetes: { kubeconfig },
      ipam: { type: identity.ipamType },
    },
  };
}

interface PodList {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly uid: string } }[];
}

/** Pods of this node, in a namespace of the same name; returns the CNI_ARGS of each. */
async function makeKubePods(server: ApiServer, node: string, count: number): Promise<readonly string[]> {
  await server.createNamespace(node);
  const pods = Array.from({ length: count }, (_, place) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `pod-${place}`, namespace: node, labels: { app: "bench" } },
    spec: { nodeName: node, containers: [{ name: "main", image: "none" }] },
  }));
  const items = [{ apiVersion: "v1", kind: "Node", metadata: { name: node } }, ...pods];
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const made = await server.get<PodList>("pods", `--namespace=${node}`);
  return made.items.map(({ metadata: { name, uid } }) =>
    ["IgnoreUnknown=1", `K8S_POD_NAMESPACE=${node}`, `K8S_POD_NAME=${name}`, `K8S_POD_UID=${uid}`].join(";"),
  );
}
