/**
 * A cluster at work: somebody creates, changes and deletes policies, namespaces, service accounts, pods and nodes, and the
 * plugin of each pod writes to both datastores of the site. Names are used once, so the final state does not depend on when a
 * controller looked.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { seededRandom } from "../../src/datastore/replica/replica-contract/recorded-history.ts";
import { identity } from "../../src/identity.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { ENDPOINT, NODE } from "../../src/model/kinds.ts";
import { MACHINE_ANNOTATION } from "../../src/model/machine-annotation.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import { searchHostOf } from "../support/host-search.ts";
import { means, poolChange, request } from "../support/ipam.ts";
import { pollUntil } from "../support/poll.ts";
import type { EtcdSite } from "./etcd-site.ts";

interface ChurnPod {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
}

const MOST = { namespaces: 4, nodes: 4, pods: 12 };
const NETWORK = "net";

export class Churn {
  /** What exists now. */
  readonly namespaces: string[] = [];
  readonly nodes: string[] = [];
  readonly pods: ChurnPod[] = [];
  /** Deleted without a DEL, or with their node. */
  readonly lost: ChurnPod[] = [];
  steps = 0;
  private readonly random: () => number;
  private readonly allocators: readonly (readonly [Datastore, ReturnType<typeof openAllocator>])[];
  private isStopped = false;
  private running: Promise<void> | undefined;

  constructor(
    private readonly site: EtcdSite,
    seed: number,
  ) {
    this.random = seededRandom(seed);
    const stores = [site.calm.store, site.disturbed.store];
    this.allocators = stores.map((store) => [store, openAllocator(store, means())] as const);
  }

  async start(): Promise<void> {
    await this.site.put(poolChange("churn", "10.77.0.0/16"));
    await this.addNamespace();
    await this.addNode();
    this.running = (async () => {
      while (!this.isStopped) await this.step();
    })();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
  }

  /** As the agents of all nodes do. */
  async searchHosts(): Promise<void> {
    for (const node of this.nodes) {
      const containers = this.pods.filter((pod) => pod.node === node).map(({ name }) => name);
      for (const [store] of this.allocators) await searchHostOf(store, node, containers);
    }
  }

  private async step(): Promise<void> {
    this.steps += 1;
    const { objects } = this.site;
    const namespace = this.one(this.namespaces);
    const label = { turn: String(this.steps) };
    const among = `p${Math.floor(this.random() * 4)}`;
    switch (Math.floor(this.random() * 14)) {
      case 0:
      case 1:
        return await this.applyPolicy({ name: among, namespace });
      case 2:
        return await objects.remove("NetworkPolicy", { name: among, namespace });
      case 3:
        return await objects.apply("ServiceAccount", { metadata: { name: among, namespace, labels: label } });
      case 4:
        return await objects.remove("ServiceAccount", { name: among, namespace });
      case 5:
        return await objects.apply("Namespace", { metadata: { name: namespace, labels: label } });
      case 6:
        return this.namespaces.length < MOST.namespaces ? await this.addNamespace() : await this.removeNamespace();
      case 7:
        return this.nodes.length < MOST.nodes ? await this.addNode() : await this.removeNode();
      case 8:
        return await this.applyNode(this.one(this.nodes), label);
      case 9:
        return await this.tamper();
      case 10:
        return await this.relabelPod(label);
      case 11:
        return await this.removePod();
      default:
        return this.pods.length < MOST.pods ? await this.addPod() : await this.removePod();
    }
  }

  private applyPolicy(metadata: { readonly name: string; readonly namespace: string }): Promise<void> {
    const ports = [{ port: 1 + this.steps, protocol: "TCP" }];
    const spec = { podSelector: {}, policyTypes: ["Ingress"], ingress: [{ ports }] };
    return this.site.objects.apply("NetworkPolicy", { metadata, spec });
  }

  private async addNamespace(): Promise<void> {
    const name = `churn-${this.steps}`;
    await this.site.objects.apply("Namespace", { metadata: { name } });
    // Pods cannot be created without it.
    await this.site.objects.apply("ServiceAccount", { metadata: { name: "default", namespace: name } });
    this.namespaces.push(name);
  }

  private async removeNamespace(): Promise<void> {
    const [name = ""] = this.namespaces.splice(0, 1);
    this.lose(({ namespace }) => namespace === name);
    await this.site.objects.remove("Namespace", { name });
  }

  private async addNode(): Promise<void> {
    const name = `churn-node-${this.steps}`;
    await this.applyNode(name, { zone: "a" });
    const metadata = { name, annotations: { [MACHINE_ANNOTATION]: name } };
    const record = NODE.codec.make(metadata, { orchRefs: [{ nodeName: name, orchestrator: "k8s" }] });
    await this.site.put({ kind: "put", key: NODE.key({ name }), value: NODE.codec.write(record) });
    this.nodes.push(name);
  }

  /** The same machine as in our record. */
  private applyNode(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    return this.site.objects.apply("Node", { metadata: { name, labels, annotations: { [MACHINE_ANNOTATION]: name } } });
  }

  private async removeNode(): Promise<void> {
    const [name = ""] = this.nodes.splice(0, 1);
    this.lose(({ node }) => node === name);
    await this.site.objects.remove("Node", { name });
  }

  private lose(isLost: (pod: ChurnPod) => boolean): void {
    const [lost, kept] = [this.pods.filter(isLost), this.pods.filter((pod) => !isLost(pod))];
    this.lost.push(...lost);
    this.pods.splice(0, this.pods.length, ...kept);
  }

  /** As the API and then the plugin do. */
  private async addPod(): Promise<void> {
    const pod = { name: `pod-${this.steps}`, namespace: this.one(this.namespaces), node: this.one(this.nodes) };
    await this.applyPod(pod, {});
    for (const [store, allocator] of this.allocators) {
      await allocator.assign(
        request(handleOf(pod), {
          ...{ network: NETWORK, interface: "eth0", node: pod.node },
          attributes: { pod: pod.name, namespace: pod.namespace },
        }),
      );
      const spec = {
        ...{ orchestrator: "k8s", node: pod.node, pod: pod.name, endpoint: "eth0", containerID: pod.name },
        ...{ profiles: [`kns.${pod.namespace}`], interfaceName: `${identity.interfacePrefix}${this.steps}` },
      };
      const labels = { [`${identity.labelPrefix}namespace`]: pod.namespace };
      const record = ENDPOINT.codec.make({ ...endpointName(pod), labels }, spec);
      await store.commit([{ kind: "create", key: endpointKey(pod), value: ENDPOINT.codec.write(record) }]);
    }
    this.pods.push(pod);
  }

  private applyPod({ name, namespace, node }: ChurnPod, labels: Readonly<Record<string, string>>): Promise<void> {
    const spec = {
      ...{ nodeName: node, terminationGracePeriodSeconds: 0, automountServiceAccountToken: false },
      // Otherwise the controller manager evicts it: there is no kubelet.
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: "main", image: "none" }],
    };
    return this.site.objects.apply("Pod", { metadata: { name, namespace, labels }, spec });
  }

  private async relabelPod(labels: Readonly<Record<string, string>>): Promise<void> {
    const pod = this.pods[Math.floor(this.random() * this.pods.length)];
    if (pod !== undefined) await this.applyPod(pod, labels);
  }

  /** With a DEL, or without one: then its address is leaked. */
  private async removePod(): Promise<void> {
    const [pod] = this.pods.splice(Math.floor(this.random() * this.pods.length), 1);
    if (pod === undefined) return;
    const isLeaked = this.random() < 0.5;
    if (isLeaked) this.lost.push(pod);
    await this.site.objects.remove("Pod", pod);
    for (const [store, allocator] of isLeaked ? [] : this.allocators) {
      const owner = { network: NETWORK, interface: "eth0", node: pod.node };
      await allocator.releaseHandle({ handle: handleOf(pod), ...owner });
      await removeRecord(store, endpointKey(pod));
    }
  }

  /** A user edits what is not theirs, and creates what is. */
  private async tamper(): Promise<void> {
    const copy = { apiVersion: `${identity.apiGroup}/v3`, kind: "Profile", metadata: { name: "" }, spec: {} };
    const record = (name: string) => ({
      ...{ kind: "put" as const, key: resourceKey("profiles", { name }) },
      value: JSON.stringify({ ...copy, metadata: { name } }),
    });
    const foreign = this.random() < 0.5 ? "kns.of-nobody" : `kns.${this.one(this.namespaces)}`;
    await this.site.put(record(foreign), record(`own-${this.steps}`));
  }

  private one(values: readonly string[]): string {
    return values[Math.floor(this.random() * values.length)] ?? "";
  }
}

/** Of the plugin's allocations. */
export function handleOf({ name }: ChurnPod): string {
  return `${NETWORK}.${name}`;
}

function endpointName({ node, name, namespace }: ChurnPod) {
  const made = workloadEndpointName({ node, orchestrator: "k8s", workload: name, endpoint: "eth0" });
  if (!made.ok) throw new Error(made.reason);
  return { namespace, name: made.name };
}

function endpointKey(pod: ChurnPod): string {
  return ENDPOINT.key(endpointName(pod));
}

/** A controller may write it in between. */
async function removeRecord(store: Datastore, key: string): Promise<void> {
  await pollUntil(async () => {
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    return entry === undefined || (await store.commit([{ kind: "delete", key, revision: entry.revision }])).ok;
  }, `the deletion of ${key}`);
}
