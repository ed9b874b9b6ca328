/** Which objects of the prune list are the product's, although other products use the same names. Pure. */
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { daemonSetPath } from "../../engine/agents.ts";
import { itemsIn, textIn } from "../../object-fields.ts";
import { podSpecOf } from "../../pod-template.ts";
import { CLUSTER_ROLE_BINDINGS, type FormerObject, SHARED_NAMES } from "../../prune-list.ts";

export interface LiveObjects {
  readonly namespace: string;
  /** By path: those of the prune list, and the DaemonSets with shared names. */
  readonly objects: ReadonlyMap<string, Fields | undefined>;
}

/** DaemonSets that show whose the objects with their names are. */
export function provingPaths(namespace: string): readonly string[] {
  return SHARED_NAMES.map((name) => daemonSetPath(namespace, name));
}

export function isOfProduct({ path }: FormerObject, live: LiveObjects): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!SHARED_NAMES.includes(name)) return true;
  return path.includes("/namespaces/") ? isOwnName(name, live) : isOwnRole(name, live);
}

/** In the product's own namespace everything is; elsewhere the pods of the DaemonSet with that name tell. */
function isOwnName(name: string, { namespace, objects }: LiveObjects): boolean {
  if (namespace === identity.systemNamespace) return true;
  const podSpec = podSpecOf(objects.get(daemonSetPath(namespace, name)));
  const containers = [...itemsIn(podSpec, "initContainers"), ...itemsIn(podSpec, "containers")];
  return containers.some((each) => namesProduct(textIn(each, "name")) || namesProduct(textIn(each, "image")));
}

const PRODUCT = new RegExp(`(^|[/-])${identity.product}([/:@-]|$)`);

function namesProduct(text: string | undefined): boolean {
  return PRODUCT.test(text ?? "");
}

/** Roles, their bindings and security policies: if they are bound to accounts of the product, and to nobody else. */
function isOwnRole(name: string, live: LiveObjects): boolean {
  const subjects = itemsIn(live.objects.get(`${CLUSTER_ROLE_BINDINGS}/${name}`), "subjects");
  return (
    subjects.length > 0 &&
    subjects.every(
      (subject) =>
        subject["kind"] === "ServiceAccount" &&
        subject["namespace"] === live.namespace &&
        isOwnName(textIn(subject, "name") ?? "", live),
    )
  );
}
