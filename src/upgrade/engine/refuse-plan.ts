/** Refuses plans that are not for this cluster as it is now. Reads only. */
import { PluginError } from "../../errors.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import { refuseAnotherCluster } from "../../ipam/confirm-cluster.ts";
import { CLUSTER_NAMESPACE_PATH, clusterUidOf } from "../../kube/live-objects.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import type { Run } from "./run.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";

/** Stays the same as long as the cluster exists; `undefined` if it cannot be found out. */
export async function clusterUid(objects: ClusterObjects): Promise<string | undefined> {
  return clusterUidOf(await objects.read(CLUSTER_NAMESPACE_PATH));
}

/** Throws if the etcd that the plan changes is recorded for another cluster. */
export async function refuseOtherCluster(run: Run, { facts }: UpgradePlan): Promise<void> {
  if (facts.datastore !== "etcd") return;
  const store = await run.openDatastore(facts.datastore);
  const { answers } = await store.read([WANTED_CLUSTER]);
  refuseAnotherCluster(answers[0]?.[0], await clusterUid(run.site.objects));
}

export async function refuseUnusablePlan({ site, ledger }: Run, plan: UpgradePlan | undefined): Promise<void> {
  if (plan === undefined) return;
  if (plan.cluster !== undefined && plan.cluster !== (await clusterUid(site.objects))) {
    const message = `Cannot apply the plan: upgrade ${plan.run} was planned for another cluster`;
    throw new PluginError("config-invalid", message, {
      details: "check --kubeconfig and --context, or make a new plan for this cluster: upgrade plan",
    });
  }
  const { current } = ledger;
  if (current?.phase === "rolled-back" && current.run === plan.run) {
    throw new PluginError("resource-changed", `Cannot apply the plan: upgrade ${plan.run} was rolled back`, {
      details: "make a new plan: upgrade plan",
    });
  }
}
