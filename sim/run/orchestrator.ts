/** The orchestrator as users and kubelets see it: namespaces, pods, nodes and policies, and what of them is true now. */
import type { KubeClient } from "../../src/kube/api.ts";
import type { WorldPod } from "../judge/invariant.ts";
import type { Labels, PolicySpec } from "../script/operation.ts";
import type { KubeletPod } from "./kubelet.ts";

/** Keeps a deleted pod until its kubelet has ended it, as the API server does with the pods of a node. */
const FINALIZER = "simulation/kubelet";

export interface RunningPod extends WorldPod {
  readonly labels: Labels;
}

const POLICIES = "/apis/networking.k8s.io/v1";

export class Orchestrator {
  readonly pods = new Map<string, RunningPod>();
  readonly nodes = new Set<string>();

  /** `user`: a connection without faults. */
  constructor(private readonly user: KubeClient) {}

  async createPod(pod: Pick<RunningPod, "namespace" | "name" | "node" | "labels">): Promise<void> {
    const { namespace, name, node, labels } = pod;
    if (this.pods.has(`${namespace}/${name}`) || !this.nodes.has(node)) return;
    const created = await this.request("POST", `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { namespace, name, labels, finalizers: [FINALIZER] },
      spec: { nodeName: node, serviceAccountName: "default", containers: [{ name: "main" }] },
      status: { phase: "Pending" },
    });
    const uid = String(created?.metadata?.["uid"]);
    this.pods.set(`${namespace}/${name}`, { ...pod, uid, isEnding: false });
  }

  /** A kubelet ends it, and forgets it then. */
  async deletePod({ namespace, name }: Named): Promise<void> {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return;
    this.pods.set(`${namespace}/${name}`, { ...pod, isEnding: true });
    await this.request("DELETE", podPath(pod));
  }

  /** The API has no such pod any more. */
  async forgetPod(pod: Named & { readonly uid?: string }): Promise<void> {
    const { namespace, name } = pod;
    const known = this.pods.get(`${namespace}/${name}`);
    if (known === undefined || (pod.uid !== undefined && pod.uid !== known.uid)) return;
    this.pods.delete(`${namespace}/${name}`);
    await this.change(podPath(pod), (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: [] },
    }));
    await this.request("DELETE", podPath(pod));
  }

  async reportAddresses(pod: KubeletPod, addresses: readonly string[]): Promise<void> {
    if (this.pods.get(`${pod.namespace}/${pod.name}`)?.uid !== pod.uid) return;
    const status = { phase: "Running", podIP: addresses[0] ?? "", podIPs: addresses.map((ip) => ({ ip })) };
    await this.change(podPath(pod), (object) => ({ ...object, status }));
  }

  async labelPod({ namespace, name }: Named, labels: Labels): Promise<void> {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return;
    this.pods.set(`${namespace}/${name}`, { ...pod, labels });
    await this.change(podPath(pod), (object) => ({ ...object, metadata: { ...object.metadata, labels } }));
  }

  async applyNamespace(name: string, labels: Labels): Promise<void> {
    await this.apply("/api/v1/namespaces", { metadata: { name, labels } });
    const account = { metadata: { namespace: name, name: "default" } };
    await this.apply(`/api/v1/namespaces/${name}/serviceaccounts`, account);
  }

  async applyPolicy(namespace: string, name: string, spec: PolicySpec): Promise<void> {
    await this.apply(`${POLICIES}/namespaces/${namespace}/networkpolicies`, { metadata: { namespace, name }, spec });
  }

  async deletePolicy(namespace: string, name: string): Promise<void> {
    await this.request("DELETE", `${POLICIES}/namespaces/${namespace}/networkpolicies/${name}`);
  }

  async registerNode(name: string, address: string): Promise<void> {
    this.nodes.add(name);
    const addresses = [
      { type: "InternalIP", address },
      { type: "Hostname", address: name },
    ];
    await this.apply("/api/v1/nodes", { metadata: { name }, spec: {}, status: { addresses } });
  }

  /** Its pods go, too. */
  async deleteNode(name: string): Promise<void> {
    this.nodes.delete(name);
    await this.request("DELETE", `/api/v1/nodes/${name}`);
    for (const pod of [...this.pods.values()]) if (pod.node === name) await this.forgetPod(pod);
  }

  podsOf(node: string): readonly RunningPod[] {
    return [...this.pods.values()].filter((pod) => pod.node === node);
  }

  private async apply(collection: string, object: ApiObject): Promise<void> {
    const created = await this.request("POST", collection, object);
    if (created !== undefined) return;
    await this.change(`${collection}/${object.metadata?.["name"]}`, (before) => ({
      ...before,
      ...object,
      metadata: { ...before.metadata, ...object.metadata },
    }));
  }

  private async change(path: string, edit: (object: ApiObject) => ApiObject): Promise<void> {
    const before = await this.request("GET", path);
    if (before !== undefined) await this.request("PUT", path, edit(before));
  }

  /** `undefined` if it is refused. */
  private async request(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: ApiObject,
  ): Promise<ApiObject | undefined> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const { status, text } = await this.user.request({ method, path, ...sent });
    return status < 300 ? (JSON.parse(text) as ApiObject) : undefined;
  }
}

interface Named {
  readonly namespace: string;
  readonly name: string;
}

interface ApiObject {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

function podPath({ namespace, name }: Named): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
