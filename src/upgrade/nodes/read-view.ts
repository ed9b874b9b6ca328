/** Reads what a rolling update of the node agents shows. */
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { fieldsIn, itemsIn, textIn } from "../object-fields.ts";
import { nameOf, type RolloutView } from "./pods.ts";

export interface RolloutTarget {
  /** Of the DaemonSet. */
  readonly path: string;
  readonly isPartlyReadyAccepted: boolean;
  readonly now: Date;
}

/** `undefined` if there is no such DaemonSet. */
export async function readRollout(
  objects: ClusterObjects,
  { path, ...more }: RolloutTarget,
): Promise<RolloutView | undefined> {
  const daemonSet = await objects.read(path);
  if (daemonSet === undefined) return undefined;
  const { uid, namespace } = fieldsIn(daemonSet, "metadata");
  const labelSelector = Object.entries(fieldsIn(daemonSet, "spec", "selector", "matchLabels"))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
  const isOwned = (object: Fields) =>
    itemsIn(object["metadata"], "ownerReferences").some((owner) => owner["uid"] === uid);
  const [pods, nodes, revisions] = await Promise.all([
    objects.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector }),
    objects.list("/api/v1/nodes"),
    objects.list(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`, { labelSelector }),
  ]);
  const revision = newest(revisions.filter(isOwned));
  return { daemonSet, pods: pods.filter(isOwned), nodes, revision, container: identity.nodeAgent, ...more };
}

/** Its name is that of the DaemonSet and the hash. */
function newest(revisions: readonly Fields[]): string | undefined {
  const [last] = revisions.toSorted((one, other) => Number(other["revision"]) - Number(one["revision"]));
  if (last === undefined) return undefined;
  return textIn(fieldsIn(last, "metadata", "labels"), "controller-revision-hash") ?? nameOf(last).replace(/^.*-/, "");
}
