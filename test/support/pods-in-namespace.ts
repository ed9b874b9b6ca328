/** What tests do with the pods of their one namespace. */
import type { ApiServer } from "./kube-apiserver.ts";
import {
  deleteAllPods,
  deletePod,
  type Pod,
  type PodPlan,
  podManifest,
  readPod,
  untilPodReady,
  workloadManifest,
} from "./kube-pods.ts";
import { pollUntil } from "./poll.ts";

/** In the namespace of the tests. */
type Plan = Omit<PodPlan, "namespace">;

export interface Pods {
  create(...plans: readonly Plan[]): Promise<void>;
  createWorkload(kind: "Deployment" | "StatefulSet", plan: Plan & { readonly replicas: number }): Promise<void>;
  /** Waits until it is Ready. */
  ready(name: string): Promise<Pod>;
  /** Waits until there are that many pods, all of them Ready; pods that still end do not count. */
  allReady(count: number): Promise<readonly Pod[]>;
  get(name: string): Promise<Pod>;
  /** All of them, or those of a workload. */
  list(workload?: string): Promise<readonly Pod[]>;
  /** Waits until that many are Ready. */
  scale(kind: "Deployment" | "StatefulSet", name: string, replicas: number): Promise<void>;
  /** Runs a command in the pod. */
  exec(name: string, ...command: readonly string[]): Promise<string>;
  /** Deletes one pod and waits until it is gone. */
  remove(name: string): Promise<void>;
  /** Deletes everything and waits until it is gone. */
  removeAll(): Promise<void>;
}

export const NAMESPACE = "pods";
const IN_NAMESPACE = `--namespace=${NAMESPACE}`;
const LIMIT_MILLISECONDS = 90_000;

export function podsOn(server: ApiServer): Pods {
  const inNamespace = <P extends Plan>(plan: P) => ({ ...plan, namespace: NAMESPACE });
  const list = async (workload?: string) => {
    const selector = workload === undefined ? [] : [`--selector=app=${workload}`];
    return (await server.get<{ readonly items: readonly Pod[] }>("pods", IN_NAMESPACE, ...selector)).items;
  };
  const readyOrWhyNot = (name: string) =>
    untilPodReady(server, NAMESPACE, name).catch(async (error) => {
      const why = await server.kubectl(["describe", "pod", name, IN_NAMESPACE]);
      throw new Error(`${error.message}\n${why}`, { cause: error });
    });
  return {
    create: (...plans) => server.apply(plans.map((plan) => podManifest(inNamespace(plan))).join("\n---\n")),
    createWorkload: (kind, plan) => server.apply(workloadManifest(kind, inNamespace(plan))),
    ready: readyOrWhyNot,
    async allReady(count) {
      let current: readonly Pod[] = [];
      const areReady = async () => {
        current = (await list()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        const names = current.map(({ metadata }) => `pod/${metadata.name}`);
        if (current.length !== count) return false;
        // One process that waits is cheaper than many that look.
        await server.kubectl(["wait", "--for=condition=Ready", ...names, IN_NAMESPACE, "--timeout=100s"]);
        current = (await list()).filter(({ metadata }) => names.includes(`pod/${metadata.name}`));
        return current.length === count && current.every(({ status }) => status.phase === "Running");
      };
      await pollUntil(areReady, `${count} Ready pods`, LIMIT_MILLISECONDS);
      return current;
    },
    get: (name) => readPod(server, NAMESPACE, name),
    list,
    async scale(kind, name, replicas) {
      await server.kubectl(["scale", kind, name, `--replicas=${replicas}`, IN_NAMESPACE]);
      if (replicas > 0) await server.kubectl(["rollout", "status", kind, name, IN_NAMESPACE, "--timeout=100s"]);
      else
        await server.kubectl(["wait", "--for=delete", "pod", `--selector=app=${name}`, IN_NAMESPACE, "--timeout=100s"]);
    },
    exec: (name, ...command) => server.kubectl(["exec", name, IN_NAMESPACE, "--", ...command]),
    remove: (name) => deletePod(server, NAMESPACE, name),
    removeAll: () => deleteAllPods(server, NAMESPACE),
  };
}
