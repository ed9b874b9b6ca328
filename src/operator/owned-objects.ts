/** Whose the rendered objects are, and which of those that exist are rendered no more. Pure. */
import { isAddressList } from "../release/admission/address-policies.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { isApplied, isBeingDeleted, isIgnored, type LiveObject } from "../release/live-object.ts";
import { MANAGED_BY } from "../release/managed-by-label.ts";
import { objectPath } from "../release/object-kinds.ts";

const KEPT_UNTIL_THE_END = new Set([
  "Namespace",
  "ServiceAccount",
  "ClusterRole",
  "ClusterRoleBinding",
  "Role",
  "RoleBinding",
]);

/**
 * Adds the operator's label and the owner. While pods are torn down the plugin and the agent still need their accounts, and
 * the namespace: those have no owner, because a deletion in the foreground would delete them first. Neither has the list of
 * those who may choose addresses, whose entries outlive the Installation.
 */
export function ownedBy(installation: LiveObject, object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = installation;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return {
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...object.metadata.labels, ...MANAGED_BY },
      ...(KEPT_UNTIL_THE_END.has(object.kind) || isAddressList(object) ? {} : { ownerReferences: [owner] }),
    },
  };
}

/** Those that the operator applied, and that nobody asked to leave alone. */
export function noLongerRendered(
  labelled: readonly LiveObject[],
  rendered: readonly KubeObject[],
): readonly LiveObject[] {
  const paths = new Set(rendered.map(objectPath));
  return labelled
    .filter((object) => isApplied(object) && !isIgnored(object) && !isBeingDeleted(object))
    .filter((object) => !paths.has(objectPath(object)));
}
