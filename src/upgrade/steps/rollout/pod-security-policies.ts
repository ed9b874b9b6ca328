/**
 * Orchestrators before v1.25 may admit only pods whose account may use a PodSecurityPolicy. Roles of earlier releases permitted
 * it, those of this one do not: without another permission the new pods would not be created.
 */
import { identity } from "../../../identity.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { isServerBefore } from "../../../kube/server-version.ts";
import { textsIn } from "../../../model/shape.ts";
import { RBAC_GROUP } from "../../../release/roles/role-objects.ts";
import type { Facts, Obstacle } from "../../engine/facts.ts";
import { nameOf } from "../../nodes/pods.ts";
import { fieldsIn, itemsIn, textIn } from "../../object-fields.ts";
import { formerObjects } from "../../prune-list.ts";

const FIRST_WITHOUT = "v1.25.0";
const POLICIES = "/apis/policy/v1beta1/podsecuritypolicies";
const RBAC = `/apis/${RBAC_GROUP}/v1`;
/** The admission plugin writes it: the name of the policy by which a pod was admitted. */
const ADMITTED_BY = "kubernetes.io/psp";

interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** Who may do what, as far as it matters here. */
export interface PodPermissions {
  readonly policies: readonly Fields[];
  /** ClusterRoles, and Roles of the namespaces of the accounts. */
  readonly roles: readonly Fields[];
  readonly bindings: readonly Fields[];
}

/** `undefined` if the API has no PodSecurityPolicies, or none exists. */
export async function readPodPermissions(objects: ClusterObjects, facts: Facts): Promise<PodPermissions | undefined> {
  if (!isServerBefore(facts.orchestratorVersion, FIRST_WITHOUT)) return undefined;
  const policies = await objects.list(POLICIES);
  if (policies.length === 0) return undefined;
  const namespaces = [...new Set(accountsOf(facts).map(({ namespace }) => `/namespaces/${namespace}`))];
  const listed = async (plural: string, ...places: readonly string[]) =>
    (await Promise.all(places.map((place) => objects.list(`${RBAC}${place}/${plural}`)))).flat();
  return {
    policies,
    roles: [...(await listed("clusterroles", "")), ...(await listed("roles", ...namespaces))],
    bindings: [...(await listed("clusterrolebindings", "")), ...(await listed("rolebindings", ...namespaces))],
  };
}

/** An obstacle if the policies are enforced, which `pods`, the node agents, show, and new pods would not be created; else a note. */
export function podSecurityFindings(
  permissions: PodPermissions,
  facts: Facts,
  pods: readonly Fields[],
): { readonly obstacles: readonly Obstacle[]; readonly notes: readonly string[] } {
  const accounts = accountsOf(facts);
  const remedy = commandFor(permissions, accounts);
  const isEnforced = pods.some((pod) => fieldsIn(pod, "metadata", "annotations")[ADMITTED_BY] !== undefined);
  const unable = accounts.filter(
    (account) => account.name !== identity.controllers && !isPermitted(permissions, account, facts),
  );
  if (unable.length === 0) return { obstacles: [], notes: [] };
  const names = listText(isEnforced ? unable : accounts);
  if (!isEnforced) {
    const condition = `This cluster has PodSecurityPolicies. If its API server enforces them, permit ${names} a privileged one first, since the roles of this release do not`;
    return { obstacles: [], notes: [`${condition}: ${remedy}`] };
  }
  const message = `The API server enforces PodSecurityPolicies, and only roles of the earlier release permit a privileged one to ${names}: new pods would not be created`;
  return { obstacles: [{ message, remedy: `${remedy}; then make the plan again` }], notes: [] };
}

/** Of the pods of this release. Those of the controllers may do with a restricted policy. */
function accountsOf({ method, namespace }: Facts): readonly Account[] {
  const { operator, nodeAgent, controllers } = identity;
  return [
    ...(method.kind === "manifest" ? [] : [{ namespace: operator, name: operator }]),
    { namespace, name: nodeAgent },
    { namespace, name: controllers },
  ];
}

function listText(accounts: readonly Account[]): string {
  return accounts.map(({ namespace, name }) => `ServiceAccount ${namespace}/${name}`).join(", ");
}

function commandFor({ policies }: PodPermissions, accounts: readonly Account[]): string {
  const ofProduct = new Set(formerObjects("").map(({ what }) => what));
  const lasting = policies.filter((policy) => !ofProduct.has(`PodSecurityPolicy ${nameOf(policy)}`));
  const policy = lasting.find(isPrivileged);
  const name = `${identity.product}-pod-security`;
  const subjects = accounts.map((account) => `--serviceaccount=${account.namespace}:${account.name}`).join(" ");
  const [before, used] =
    policy === undefined ? ["create a privileged PodSecurityPolicy; ", "NAME"] : ["", nameOf(policy)];
  return `${before}kubectl create clusterrole ${name} --verb=use --resource=podsecuritypolicies.policy --resource-name=${used} && kubectl create clusterrolebinding ${name} --clusterrole=${name} ${subjects}`;
}

function isPrivileged(policy: Fields): boolean {
  const { privileged, hostNetwork } = fieldsIn(policy, "spec");
  return privileged === true && hostNetwork === true;
}

/** By a role that the upgrade neither changes nor deletes, and a policy that it does not delete. */
function isPermitted({ policies, roles, bindings }: PodPermissions, account: Account, facts: Facts): boolean {
  const ofProduct = new Set(formerObjects(facts.namespace).map(({ what }) => what));
  const usable = new Set(
    policies.filter((each) => isPrivileged(each) && !ofProduct.has(`PodSecurityPolicy ${nameOf(each)}`)).map(nameOf),
  );
  return bindings.some((binding) => {
    const namespace = textIn(fieldsIn(binding, "metadata"), "namespace");
    const isOfPlace = namespace === undefined || namespace === account.namespace;
    const { kind, name } = fieldsIn(binding, "roleRef");
    const isLasting = !OWN_ROLES.has(String(name)) && !ofProduct.has(`ClusterRole ${name}`);
    if (!isOfPlace || !isLasting || !itemsIn(binding, "subjects").some((each) => isSubject(each, account)))
      return false;
    const role = roles.find((each) => {
      const place = textIn(fieldsIn(each, "metadata"), "namespace");
      return nameOf(each) === name && place === (kind === "ClusterRole" ? undefined : namespace);
    });
    return itemsIn(role, "rules").some((rule) => mayUse(rule, usable));
  });
}

const OWN_ROLES: ReadonlySet<string> = new Set([identity.operator, identity.nodeAgent, identity.controllers]);

function isSubject(subject: Fields, { namespace, name }: Account): boolean {
  const named = textIn(subject, "name") ?? "";
  switch (textIn(subject, "kind")) {
    case "ServiceAccount":
      return named === name && subject["namespace"] === namespace;
    case "User":
      return named === `system:serviceaccount:${namespace}:${name}`;
    case "Group":
      return ["system:authenticated", "system:serviceaccounts", `system:serviceaccounts:${namespace}`].includes(named);
    default:
      return false;
  }
}

function mayUse(rule: Fields, policies: ReadonlySet<string>): boolean {
  const has = (field: string, ...wanted: readonly string[]) =>
    textsIn(rule[field]).some((each) => each === "*" || wanted.includes(each));
  const names = textsIn(rule["resourceNames"]);
  const isOne = names.length === 0 ? policies.size > 0 : names.some((name) => policies.has(name));
  return (
    has("verbs", "use") && has("apiGroups", "policy", "extensions") && has("resources", "podsecuritypolicies") && isOne
  );
}
