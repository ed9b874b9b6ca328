/** A cluster whose network is the product, and what its pods may leave behind: nothing. */
import { expect } from "bun:test";
import { poolsOf } from "./kube-families.ts";
import { NODE_NAME, openProductCluster, type ProductCluster, type ProductClusterPlan } from "./kube-product.ts";
import { NAMESPACE, type Pods, podsOn } from "./pods-in-namespace.ts";
import { pollUntil } from "./poll.ts";
import { expectTraces, tracesOf } from "./traces.ts";

export interface ProductPods extends AsyncDisposable {
  readonly cluster: ProductCluster;
  readonly pods: Pods;
  /** Waits until the datastore has the endpoints and addresses of these pods, and no other. */
  untilOnlyRecorded(names: readonly string[]): Promise<void>;
  /** Fails unless, soon, kernel and datastore are as before the first pod, and `ipam check` finds no problem. */
  expectNothingLeft(): Promise<void>;
}

export async function openProductPods(plan: ProductClusterPlan): Promise<ProductPods> {
  await using undo = new AsyncDisposableStack();
  const cluster = undo.use(await openProductCluster(plan));
  const { node, network } = cluster;
  const pods = podsOn(cluster.server);
  await cluster.server.createNamespace(NAMESPACE);
  // The first pod also creates the nftables tables that all pods share.
  await pods.create({ name: "first" });
  await pods.ready("first");
  await pods.remove("first");
  let empty = await tracesOf(node.host, network);
  const isGone = async () => {
    empty = await tracesOf(node.host, network);
    return !empty.processes.includes("containerd-shim") && empty.kept.length === 0;
  };
  await pollUntil(isGone, "the first pod to be gone");

  const all = undo.move();
  return {
    cluster,
    pods,
    async untilOnlyRecorded(names) {
      const usual = poolsOf(plan.families, "usual").map(({ name }) => `${names.length} of ${name}`);
      const wanted = [
        ...usual,
        ...names.map((name) => `workloadendpoint/${NAMESPACE}/${endpointName(name)}`),
      ].toSorted();
      let recorded: readonly string[] = [];
      const isSo = async () => {
        recorded = (await network.kept(node.host)).toSorted();
        return Bun.deepEquals(recorded, wanted);
      };
      await pollUntil(isSo, "the records of the pods", 60_000).catch(() => expect(recorded).toEqual(wanted));
    },
    async expectNothingLeft() {
      await expectTraces(node.host, network, empty);
      expect(await cluster.admin("ipam", "check", "--no-grace")).toContain(": no problems");
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The name of a pod's WorkloadEndpoint. */
export function endpointName(pod: string): string {
  const [node, name] = [NODE_NAME, pod].map((part) => part.replaceAll("-", "--"));
  return `${node}-k8s-${name}-eth0`;
}
