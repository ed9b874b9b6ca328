/** The accounts of the components, with what each may do. Pure. */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import { accountObject, clusterRoleObjects, namespacedRoleObjects } from "../roles/role-objects.ts";
import {
  controllersRules,
  HOLD_LEASE,
  nodeNamespaceRules,
  nodeRules,
  PLUGIN_ACCOUNT,
  pluginRules,
  type Rule,
  type RuleDatastore,
} from "../roles/rules.ts";
import type { RenderPlan } from "./render-plan.ts";

export function accountObjects({ installation, facts, node }: RenderPlan): readonly KubeObject[] {
  const datastore: RuleDatastore = installation.datastore.type === "Etcd" ? "etcd" : "kubernetes";
  const { namespace } = facts;
  return [
    ...accountWith({ name: PLUGIN_ACCOUNT, namespace }, { cluster: pluginRules(datastore) }),
    ...accountWith(
      { name: identity.nodeAgent, namespace },
      { cluster: [...nodeRules(datastore), ...node.rules], own: nodeNamespaceRules() },
    ),
    ...accountWith(
      { name: identity.controllers, namespace },
      { cluster: controllersRules(datastore), own: [HOLD_LEASE] },
    ),
  ];
}

interface Rules {
  readonly cluster: readonly Rule[];
  /** In the namespace of the account alone. */
  readonly own?: readonly Rule[];
}

function accountWith(
  account: { readonly name: string; readonly namespace: string },
  { cluster, own }: Rules,
): readonly KubeObject[] {
  return [
    accountObject(account),
    ...clusterRoleObjects(account.name, cluster, account),
    ...(own === undefined ? [] : namespacedRoleObjects(account, own, account)),
  ];
}
