/** The orchestrator as users and kubelets see it: namespaces, pods, nodes and policies, and what of them is true now. */
import { RECORDED_ANNOTATIONS, recordedAnnotation } from "../../src/model/recorded-annotations.ts";
import { isObject } from "../../src/model/shape.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import type { SimulatedApi } from "../datastore/simulated-api.ts";
import { KEEP_SECONDS, type WorldPod } from "../judge/invariant.ts";
import type { Labels, PolicySpec, RecordedAnnotations } from "../script/operation.ts";
import type { KubeletPod } from "./kubelet.ts";

/** Keeps a deleted pod until its kubelet has ended it, as the API server does with the pods of a node. */
const FINALIZER = "simulation/kubelet";

export interface RunningPod extends WorldPod {
  readonly labels: Labels;
  /** Until then its containers run on, if it ends. */
  readonly endsAt?: number;
}

const KEEP_FOR = `${KEEP_SECONDS}s`;
const POLICIES = "/apis/networking.k8s.io/v1";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

export class Orchestrator {
  readonly pods = new Map<string, RunningPod>();
  readonly nodes = new Set<string>();
  /** The UIDs of pods whose users have written annotations of the plugin. */
  readonly annotated = new Set<string>();

  constructor(private readonly api: SimulatedApi) {}

  createPod(pod: Pick<RunningPod, "namespace" | "name" | "node" | "labels" | "asksFor" | "keeps">): void {
    const { namespace, name, node, labels } = pod;
    if (this.pods.has(`${namespace}/${name}`) || !this.nodes.has(node)) return;
    this.ensureNamespace(namespace);
    const { metadata } = this.api.create(`/api/v1/namespaces/${namespace}/pods`, {
      ...{ apiVersion: "v1", kind: "Pod" },
      metadata: { namespace, name, labels, annotations: annotationsOf(pod), finalizers: [FINALIZER] },
      spec: { nodeName: node, serviceAccountName: "default", containers: [{ name: "main" }] },
      status: { phase: "Pending" },
    });
    this.pods.set(`${namespace}/${name}`, { ...pod, uid: String(metadata["uid"]), isEnding: false });
  }

  /** It exists, and nobody has asked for its end. */
  isWanted({ namespace, name, uid }: Named & { readonly uid: string }): boolean {
    const pod = this.pods.get(`${namespace}/${name}`);
    return pod?.uid === uid && !pod.isEnding;
  }

  /** A kubelet ends it, not before the given time, and forgets it then. */
  deletePod({ namespace, name }: Named, endsAt: number): void {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return;
    this.pods.set(`${namespace}/${name}`, { ...pod, isEnding: true, endsAt });
    this.api.remove(podPath(pod));
  }

  /** The API has no such pod any more. */
  forgetPod({ namespace, name, uid }: Named & { readonly uid: string }): void {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod?.uid !== uid) return;
    this.pods.delete(`${namespace}/${name}`);
    this.api.patch(podPath(pod), { metadata: { finalizers: [] } });
    this.api.remove(podPath(pod));
  }

  reportAddresses(pod: KubeletPod, addresses: readonly string[]): void {
    if (this.pods.get(`${pod.namespace}/${pod.name}`)?.uid !== pod.uid) return;
    const status = { phase: "Running", podIP: addresses[0] ?? "", podIPs: addresses.map((ip) => ({ ip })) };
    this.api.patch(podPath(pod), { status });
  }

  /** Of its last ADD. */
  noteOutcome({ namespace, name, uid }: KubeletPod, failure: string | undefined): void {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod?.uid !== uid || pod.failure === failure) return;
    const { failure: _former, ...rest } = pod;
    this.pods.set(`${namespace}/${name}`, failure === undefined ? rest : { ...rest, failure });
  }

  labelPod({ namespace, name }: Named, labels: Labels): void {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return;
    this.pods.set(`${namespace}/${name}`, { ...pod, labels });
    this.api.patch(podPath(pod), { metadata: { labels } });
  }

  /** As its kubelet reported it. */
  addressOf(pod: Named): string | undefined {
    const status = this.api.object(podPath(pod))?.["status"];
    const { podIP } = isObject(status) ? status : {};
    return typeof podIP === "string" && podIP !== "" ? podIP : undefined;
  }

  annotatePod({ namespace, name }: Named, given: RecordedAnnotations): void {
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return;
    const named = RECORDED_ANNOTATIONS.flatMap((each) => {
      const value = given[each];
      return value === undefined ? [] : [[recordedAnnotation(each), value] as const];
    });
    this.annotated.add(pod.uid);
    this.api.patch(podPath(pod), { metadata: { annotations: Object.fromEntries(named) } });
  }

  applyNamespace(name: string, labels: Labels): void {
    this.apply("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: name, name: "default" } };
    this.apply(`/api/v1/namespaces/${name}/serviceaccounts`, account);
  }

  /** The API accepts nothing in a namespace that does not exist. */
  private ensureNamespace(name: string): void {
    if (this.api.object(`/api/v1/namespaces/${name}`) === undefined) this.applyNamespace(name, {});
  }

  applyPolicy(namespace: string, name: string, spec: PolicySpec): void {
    this.ensureNamespace(namespace);
    const kind = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
    const collection = `${POLICIES}/namespaces/${namespace}/networkpolicies`;
    this.apply(collection, { ...kind, metadata: { namespace, name }, spec });
  }

  deletePolicy(namespace: string, name: string): void {
    this.api.remove(`${POLICIES}/namespaces/${namespace}/networkpolicies/${name}`);
  }

  /** As a kubelet does. */
  registerNode(name: string, { address, machineId }: { readonly address: string; readonly machineId: string }): void {
    this.nodes.add(name);
    const addresses = [
      { type: "InternalIP", address },
      { type: "Hostname", address: name },
    ];
    const kind = { apiVersion: "v1", kind: "Node" };
    const status = { addresses, nodeInfo: { machineID: machineId } };
    this.apply("/api/v1/nodes", { ...kind, metadata: { name }, spec: {}, status });
  }

  /** Its pods go, too. */
  deleteNode(name: string): void {
    this.nodes.delete(name);
    this.api.remove(`/api/v1/nodes/${name}`);
    for (const pod of this.podsOf(name)) this.forgetPod(pod);
  }

  podsOf(node: string): readonly RunningPod[] {
    return [...this.pods.values()].filter((pod) => pod.node === node);
  }

  private apply(collection: string, object: Parameters<SimulatedApi["create"]>[1]): void {
    const path = `${collection}/${object.metadata["name"]}`;
    const before = this.api.object(path);
    if (before === undefined) this.api.create(collection, object);
    else this.api.replace(path, { ...before, ...object, metadata: { ...before.metadata, ...object.metadata } });
  }
}

function annotationsOf({ asksFor, keeps }: Pick<RunningPod, "asksFor" | "keeps">): Readonly<Record<string, string>> {
  return {
    ...(asksFor === undefined ? {} : { [annotationKey("ipAddrs")]: JSON.stringify([asksFor]) }),
    ...(keeps === undefined ? {} : { [annotationKey("keepAddresses")]: "true", [annotationKey("keepFor")]: KEEP_FOR }),
  };
}

function podPath({ namespace, name }: Named): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
