/** An installation by a manifest, without the operator: two node agents on one node would fight over it. Pure. */
import { identity } from "../identity.ts";
import { quoted } from "../quote.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed, objectsOf } from "./followed-objects.ts";

const PART_OF = "app.kubernetes.io/part-of";

/** `undefined` if there is none, or the operator's own is running beside it already. */
export function manifestProblem(snapshot: FollowedSnapshot, { components }: Namespaces): string | undefined {
  const name = identity.nodeAgent;
  if (objectNamed(snapshot, "daemonsets", { namespace: components, name }) !== undefined) return undefined;
  const found = objectsOf(snapshot, "agents").find(
    ({ metadata }) => metadata.namespace !== components && metadata.labels?.[PART_OF] === identity.product,
  );
  if (found === undefined) return undefined;
  const namespace = found.metadata.namespace ?? "";
  return `${identity.title} was installed by a manifest: DaemonSet ${quoted(`${namespace}/${name}`)} exists, and its agents would lose their permissions; nothing was changed. First remove that installation (docs/manifests.md, "Removal"): run "kubectl --namespace ${namespace} delete daemonset/${name} deployment/${identity.controllers}", then delete the other objects of the manifest with "--selector ${PART_OF}=${identity.product}", which keeps pools and addresses`;
}
