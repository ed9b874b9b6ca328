/**
 * Kubelets of nodes that do not exist: they mark pods as running and ready, and complete their deletion. Pods without a
 * node are bound as well: those of a DaemonSet to the node that it names, others to the first node. Nothing is executed.
 */
import { identity } from "../../../src/identity.ts";
import type { KubeClient } from "../../../src/kube/api.ts";
import { clusterObjects } from "../../../src/kube/objects.ts";
import type { AnyObject } from "./former-object.ts";

export type PodBehaviour =
  | { readonly kind: "run" }
  /** Only so many containers become ready: 1/2. */
  | { readonly kind: "run-partly"; readonly readyContainers: number }
  | { readonly kind: "crash-loop" }
  /** Nothing happens to the pod, neither start nor end: its kubelet is down. */
  | { readonly kind: "hold" };

export interface ImitatedKubelets {
  /** From now on these pods behave so; the last call that matches a pod counts. */
  behave(matches: (pod: AnyObject) => boolean, behaviour: PodBehaviour): void;
  stop(): Promise<void>;
}

const POD_ADDRESS = `${identity.annotationPrefix}podIP`;

/** By name: the address of each node. */
export function startImitatedKubelets(client: KubeClient, nodes: ReadonlyMap<string, string>): ImitatedKubelets {
  const objects = clusterObjects(client);
  const ending = new AbortController();
  const pods = new Map<string, AnyObject>();
  const rules: { matches: (pod: AnyObject) => boolean; behaviour: PodBehaviour }[] = [];
  const behaviourOf = (pod: AnyObject) => rules.findLast(({ matches }) => matches(pod))?.behaviour ?? { kind: "run" };

  const advance = async (pod: AnyObject): Promise<void> => {
    const behaviour = behaviourOf(pod);
    const path = `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;
    const node = pod.spec.nodeName ?? wantedNode(pod) ?? nodes.keys().next().value;
    if (behaviour.kind === "hold" || !nodes.has(node)) return;
    if (pod.metadata.deletionTimestamp !== undefined) {
      await objects.remove(path, { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } });
    } else if (pod.spec.nodeName === undefined) {
      const target = { apiVersion: "v1", kind: "Node", name: node };
      await objects.create(`${path}/binding`, {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: pod.metadata.name, uid: pod.metadata.uid },
        target,
      });
    } else {
      const status = statusOf(pod, behaviour, nodes.get(node) ?? "");
      if (!isReported(pod, status)) await objects.patch(`${path}/status`, { status });
    }
  };
  // A pod that is changed or deleted meanwhile has another event on its way.
  const advanceQuietly = (pod: AnyObject) => advance(pod).catch(() => {});

  const follow = async () => {
    while (!ending.signal.aborted) {
      pods.clear();
      try {
        for await (const { type, text } of client.watch("/api/v1/pods", {}, ending.signal)) {
          const pod = JSON.parse(text);
          if (type === "OPENED" || type === "ERROR" || type === "BOOKMARK") continue;
          if (type === "DELETED") pods.delete(pod.metadata.uid);
          else pods.set(pod.metadata.uid, pod);
          if (type !== "DELETED") void advanceQuietly(pod);
        }
      } catch {
        // The API server is gone for a moment, or for good.
        await Bun.sleep(200);
      }
    }
  };
  const following = follow();
  return {
    behave(matches, behaviour) {
      rules.push({ matches, behaviour });
      for (const pod of pods.values()) if (matches(pod)) void advanceQuietly(pod);
    },
    async stop() {
      ending.abort();
      await following;
    },
  };
}

/** The DaemonSet controller leaves binding to the scheduler, and names the node in an affinity. */
function wantedNode(pod: AnyObject): string | undefined {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms?.[0]?.matchFields?.find(({ key }: AnyObject) => key === "metadata.name")?.values[0];
}

function statusOf(pod: AnyObject, behaviour: PodBehaviour, nodeAddress: string): AnyObject {
  const containers: AnyObject[] = pod.spec.containers;
  const readyCount =
    behaviour.kind === "run-partly" ? behaviour.readyContainers : behaviour.kind === "run" ? containers.length : 0;
  const isReady = readyCount >= containers.length;
  const podIP = pod.spec.hostNetwork === true ? nodeAddress : pod.metadata.annotations?.[POD_ADDRESS]?.split("/")[0];
  const at = pod.metadata.creationTimestamp;
  const condition = (type: string, holds: boolean) => ({
    type,
    status: holds ? "True" : "False",
    lastTransitionTime: at,
  });
  return {
    phase: "Running",
    hostIP: nodeAddress,
    startTime: at,
    ...(podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] }),
    conditions: [
      condition("PodScheduled", true),
      condition("Initialized", true),
      condition("ContainersReady", isReady),
      condition("Ready", isReady),
    ],
    containerStatuses: containers.map(({ name, image }, index) => ({
      name,
      image,
      imageID: image,
      ready: index < readyCount,
      started: behaviour.kind !== "crash-loop",
      restartCount: behaviour.kind === "crash-loop" ? 5 : 0,
      state:
        behaviour.kind === "crash-loop"
          ? { waiting: { reason: "CrashLoopBackOff", message: "back-off 5m0s restarting failed container" } }
          : { running: { startedAt: at } },
    })),
  };
}

function isReported(pod: AnyObject, wanted: AnyObject): boolean {
  const summary = ({ phase, podIP, containerStatuses = [] }: AnyObject) =>
    JSON.stringify([
      phase,
      podIP,
      containerStatuses.map((each: AnyObject) => [each.ready, each.state?.waiting?.reason]),
    ]);
  return summary(pod.status) === summary(wanted);
}
