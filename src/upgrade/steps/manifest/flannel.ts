/** Flannel in the pods of the node agents uses their account, which has another name now. Pure. */
import { identity } from "../../../identity.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { groupPath } from "../../../release/object-kinds.ts";
import { fieldsIn } from "../../workload.ts";
import { type LiveManifest, NAMESPACE } from "./live-manifest.ts";

const RBAC = "rbac.authorization.k8s.io/v1";
const NAME = "canal-flannel";

export const FLANNEL_BINDING = `${groupPath(RBAC)}/clusterrolebindings/${NAME}`;

/** None if there is no flannel. */
export function flannelBinding(live: LiveManifest): readonly KubeObject[] {
  const binding = live.get(FLANNEL_BINDING);
  if (binding === undefined) return [];
  const subjects = [{ kind: "ServiceAccount", name: identity.nodeAgent, namespace: NAMESPACE }];
  return [
    {
      apiVersion: RBAC,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME },
      roleRef: fieldsIn(binding, "roleRef"),
      subjects,
    },
  ];
}
