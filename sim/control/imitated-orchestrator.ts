/**
 * The part of the orchestrator that acts on its own: pods of DaemonSets and Deployments, with rolling updates and reports;
 * kubelets that start and end pods after a while; the garbage collector; the namespace controller; and definitions, which
 * become established. Looks about once a second, and writes only what has to change.
 */
import type { ApiObject } from "../../src/datastore/kube/api.ts";
import { identity } from "../../src/identity.ts";
import type { KubeRequest } from "../../src/kube/api.ts";
import type { SimulatedApi } from "../datastore/simulated-api.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import { NAMESPACE_FINALIZER } from "./api/server-rules.ts";
import { daemonSetPlan, deploymentPlan, type NewRevision, type Workload } from "./workload-plans.ts";

const LOOK_MILLISECONDS = 1_000;
const LONGEST_START_MILLISECONDS = 5_000;

export class ImitatedOrchestrator {
  /** When a pod runs, or has ended, by its UID. */
  private readonly due = new Map<string, number>();
  private seen = "";
  /** Nodes on which no pod starts or ends. */
  private readonly halted = new Set<string>();

  constructor(
    private readonly api: SimulatedApi,
    private readonly scheduler: Scheduler,
    private readonly random: Random,
  ) {
    this.lookAgain();
  }

  /** "down": its Node is not ready any more. "stalled": it looks well, yet pods neither start nor end. */
  halt(node: string, how: "down" | "stalled"): void {
    this.halted.add(node);
    if (how === "down")
      this.report(`/api/v1/nodes/${node}`, nothing(), nodeStatus("Unknown", "NodeStatusUnknown", this.scheduler.date));
  }

  resume(node: string): void {
    this.halted.delete(node);
    this.report(`/api/v1/nodes/${node}`, nothing(), nodeStatus("True", "KubeletReady", this.scheduler.date));
    this.seen = "";
  }

  private lookAgain(): void {
    this.scheduler.after(LOOK_MILLISECONDS * (0.5 + this.random.next()), () => {
      this.lookAgain();
      const state = this.fingerprint();
      if (state === this.seen && this.due.size === 0) return;
      this.seen = state;
      this.collectGarbage();
      this.establishDefinitions();
      for (const workload of this.list("/apis/apps/v1/daemonsets")) this.runDaemonSet(workload);
      for (const workload of this.list("/apis/apps/v1/deployments")) this.runDeployment(workload);
      for (const pod of this.list("/api/v1/pods")) this.runPod(pod);
      for (const namespace of this.list("/api/v1/namespaces")) this.runNamespace(namespace);
    });
  }

  /** Of everything but leases, which are renewed all the time. */
  private fingerprint(): string {
    let [latest, count] = [0, 0];
    for (const { path, object } of this.api.all()) {
      if (path.includes("/leases/")) continue;
      latest = Math.max(latest, Number(object.metadata.resourceVersion));
      count += 1;
    }
    return `${latest} ${count}`;
  }

  private list(collection: string): readonly Workload[] {
    return this.api.list(collection) as unknown as readonly Workload[];
  }

  private send(request: KubeRequest): void {
    this.api.respond({ ...request, query: { ...request.query, fieldManager: "kube-controller-manager" } });
  }

  private patch(path: string, change: object): void {
    this.send({ method: "PATCH", path, contentType: "application/merge-patch+json", body: JSON.stringify(change) });
  }

  /** Objects whose owners are all gone. */
  private collectGarbage(): void {
    const all = [...this.api.all()];
    const uids = new Set(all.map(({ object }) => object.metadata.uid));
    for (const { path, object } of all) {
      const { ownerReferences: owners = [], deletionTimestamp } = (object as unknown as Workload).metadata;
      const isOrphan = owners.length > 0 && owners.every(({ uid }) => !uids.has(uid));
      if (isOrphan && deletionTimestamp === undefined) this.remove(path);
    }
  }

  private remove(path: string): void {
    const isPod = /\/pods\/[^/]+$/.test(path);
    this.send({ method: "DELETE", path, body: JSON.stringify(isPod ? { gracePeriodSeconds: 30 } : {}) });
  }

  /** The API server itself serves them from then on. */
  private establishDefinitions(): void {
    for (const { metadata, spec, status } of this.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")) {
      if (status?.["conditions"] !== undefined) continue;
      const conditions = ["NamesAccepted", "Established"].map((type) => ({ type, status: "True" }));
      const versions = spec.versions ?? [];
      const storedVersions = versions.filter(({ storage }) => storage).map(({ name }) => name);
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
      this.patch(`${path}/status`, { status: { conditions, storedVersions } });
      for (const { name: version } of versions) this.register({ group: spec.group ?? "", version });
    }
  }

  private register(spec: { readonly group: string; readonly version: string }): void {
    const path = "/apis/apiregistration.k8s.io/v1/apiservices";
    const name = `${spec.version}.${spec.group}`;
    if (this.api.object(`${path}/${name}`) !== undefined) return;
    const status = { conditions: [{ type: "Available", status: "True", reason: "Local" }] };
    this.create(path, {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name },
      spec,
      status,
    });
  }

  private runDaemonSet(daemonSet: Workload): void {
    const { namespace, name } = daemonSet.metadata;
    const nodes = this.list("/api/v1/nodes");
    const { revision, create, remove, status } = daemonSetPlan(daemonSet, nodes, this.podsOf(daemonSet));
    if (daemonSet.metadata.deletionTimestamp !== undefined) return;
    this.keepRevision(daemonSet, revision);
    this.carryOut({ namespace, create, remove });
    this.report(`/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`, daemonSet, status);
  }

  /** That of the present template has the highest number, also if an earlier template is the present one again. */
  private keepRevision({ metadata }: Workload, present: NewRevision): void {
    const collection = `/apis/apps/v1/namespaces/${metadata.namespace}/controllerrevisions`;
    const path = `${collection}/${present.metadata.name}`;
    const others = this.list(collection).filter(
      (each) =>
        each.metadata.name !== present.metadata.name &&
        each.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid),
    );
    const revision = 1 + Math.max(0, ...others.map((each) => Number(each.revision)));
    const before = this.api.object(path);
    if (before === undefined) this.create(collection, { ...present, revision });
    else if (Number(before["revision"]) < revision) this.patch(path, { revision });
  }

  private runDeployment(deployment: Workload): void {
    const { namespace, name, deletionTimestamp } = deployment.metadata;
    if (deletionTimestamp !== undefined) return;
    const nodes = this.list("/api/v1/nodes");
    const { create, remove, status } = deploymentPlan(deployment, nodes, this.podsOf(deployment));
    this.carryOut({ namespace, create, remove });
    this.report(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`, deployment, status);
  }

  private podsOf({ metadata: { namespace, uid } }: Workload): readonly Workload[] {
    return this.list(`/api/v1/namespaces/${namespace}/pods`).filter(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid),
    );
  }

  private carryOut({
    namespace,
    create,
    remove,
  }: {
    namespace: string;
    create: readonly object[];
    remove: readonly string[];
  }): void {
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    for (const name of remove) this.remove(`${pods}/${name}`);
    for (const pod of create) this.create(pods, pod);
  }

  private create(path: string, object: object): void {
    this.send({ method: "POST", path, body: JSON.stringify(object) });
  }

  private report(path: string, { status: before }: Pick<Workload, "status">, status: object): void {
    const isSame = Object.entries(status).every(([field, value]) => Bun.deepEquals(before?.[field], value));
    if (!isSame) this.patch(`${path}/status`, { status });
  }

  /** As a kubelet does, after a while. */
  private runPod(pod: Workload): void {
    const { namespace, name, uid, deletionTimestamp } = pod.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const isRunning = pod.status?.["phase"] === "Running";
    if ((deletionTimestamp === undefined && isRunning) || this.halted.has(pod.spec.nodeName ?? "")) return;
    const key = `${uid} ${deletionTimestamp === undefined ? "starts" : "ends"}`;
    const due = this.due.get(key) ?? this.scheduler.now + this.random.below(LONGEST_START_MILLISECONDS);
    this.due.set(key, due);
    if (this.scheduler.now < due) return;
    this.due.delete(key);
    if (deletionTimestamp === undefined)
      this.patch(`${path}/status`, { status: runningStatus(pod, this.scheduler.date) });
    else this.send({ method: "DELETE", path, body: JSON.stringify({ gracePeriodSeconds: 0 }) });
  }

  private runNamespace({ metadata }: Workload): void {
    if (metadata.deletionTimestamp === undefined) {
      this.addAccount(metadata.name);
      return;
    }
    const within = [...this.api.all()].filter(({ path }) => path.includes(`/namespaces/${metadata.name}/`));
    for (const { path, object } of within) if (!isEnding(object)) this.remove(path);
    if (within.length > 0) return;
    const finalizers = (metadata.finalizers ?? []).filter((each) => each !== NAMESPACE_FINALIZER);
    this.patch(`/api/v1/namespaces/${metadata.name}`, { metadata: { finalizers } });
  }

  private addAccount(namespace: string): void {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    if (this.api.object(`${path}/default`) !== undefined) return;
    this.create(path, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace } });
  }
}

function nothing(): Pick<Workload, "status"> {
  return {};
}

function nodeStatus(status: string, reason: string, now: Date): object {
  return { conditions: [{ type: "Ready", status, reason, lastTransitionTime: now.toISOString() }] };
}

function isEnding({ metadata }: ApiObject): boolean {
  return metadata["deletionTimestamp"] !== undefined;
}

function runningStatus({ metadata, spec }: Workload, now: Date): object {
  const at = now.toISOString();
  const podIP = metadata.annotations?.[`${identity.annotationPrefix}podIP`]?.split("/")[0];
  return {
    phase: "Running",
    ...(podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] }),
    conditions: ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map((type) => ({
      type,
      status: "True",
      lastTransitionTime: at,
    })),
    containerStatuses: (spec.containers ?? []).map(({ name, image }) => ({
      name,
      image,
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: at } },
    })),
  };
}
