/** Which groups, versions and kinds the server has: the built-in ones, and those of definitions that are established. Pure. */

import { OPERATOR_API, PRODUCT_API } from "../../../src/identity.ts";
import type { KubeRequest, KubeResponse } from "../../../src/kube/api.ts";
import { FORMER_API } from "../../../src/upgrade/former-names.ts";
import type { FakeObject } from "../../../test/support/kube-api/fake-patches.ts";
import { isFields } from "./field-sets.ts";

interface Served {
  /** `v1`, `apps/v1` */
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];
/** As version.Info has it. */
const VERSION = { major: "1", minor: "34", gitVersion: "v1.34.0" };

const BUILT_IN: readonly Served[] = [
  ...served("v1", true, ["Pod", "ConfigMap", "Secret", "ServiceAccount", "Service", "Event"]),
  ...served("v1", false, ["Namespace", "Node"]),
  ...served("apps/v1", true, ["DaemonSet", "Deployment", "ControllerRevision", "StatefulSet", "ReplicaSet"]),
  ...served("rbac.authorization.k8s.io/v1", false, ["ClusterRole", "ClusterRoleBinding"]),
  ...served("rbac.authorization.k8s.io/v1", true, ["Role", "RoleBinding"]),
  ...served("policy/v1", true, ["PodDisruptionBudget"]),
  ...served("coordination.k8s.io/v1", true, ["Lease"]),
  ...served("storage.k8s.io/v1", false, ["CSIDriver"]),
  ...served("apiextensions.k8s.io/v1", false, ["CustomResourceDefinition"]),
  ...served("apiregistration.k8s.io/v1", false, ["APIService"]),
];

function served(apiVersion: string, namespaced: boolean, kinds: readonly string[]): readonly Served[] {
  return kinds.map((kind) => ({ apiVersion, kind, namespaced, plural: `${kind.toLowerCase()}s` }));
}

export class Discovery {
  private known: readonly Served[] | undefined;

  constructor(private readonly list: (collection: string) => readonly FakeObject[]) {}

  /** `undefined` if the request is about objects of a kind that there is, or of a group that nobody defines. */
  answer(request: KubeRequest): KubeResponse | undefined {
    const isOfDefinitions = request.path.startsWith(DEFINITIONS);
    if (isOfDefinitions && request.method !== "GET") this.known = undefined;
    if (isOfDefinitions) return undefined;
    this.known ??= [...BUILT_IN, ...this.list(DEFINITIONS).flatMap(definedBy)];
    return answerOf(request, this.known);
  }
}

function answerOf({ path, method }: KubeRequest, kinds: readonly Served[]): KubeResponse | undefined {
  if (method === "GET" && path === "/version") return ok(VERSION);
  const [, root, ...rest] = path.split("/");
  if (root === "apis" && rest.length === 0) return ok({ groups: groupsOf(kinds) });
  const apiVersion = root === "api" ? (rest[0] ?? "") : rest.slice(0, 2).join("/");
  const below = rest.slice(root === "api" ? 1 : 2);
  if (method === "GET" && below.length === 0) return ok(resourcesOf(kinds, apiVersion));
  if (!DEFINED.has(rest[0] ?? "")) return undefined;
  const plural = below[0] === "namespaces" ? below[2] : below[0];
  const isServed = kinds.some((each) => each.apiVersion === apiVersion && each.plural === plural);
  return isServed ? undefined : notFound();
}

/** Groups without kinds of their own until definitions come. */
const DEFINED: ReadonlySet<string> = new Set([PRODUCT_API.group, FORMER_API.group, OPERATOR_API.group]);

function definedBy({ spec, status }: FakeObject): readonly Served[] {
  if (!isFields(spec) || !isFields(spec["names"]) || !isFields(status) || status["conditions"] === undefined) return [];
  const { group, scope, names, versions } = spec;
  const { plural, kind } = names;
  return (Array.isArray(versions) ? versions : []).map(({ name }) => ({
    apiVersion: `${group}/${name}`,
    plural: String(plural),
    kind: String(kind),
    namespaced: scope === "Namespaced",
  }));
}

function groupsOf(kinds: readonly Served[]): readonly object[] {
  const versions = [...new Set(kinds.map(({ apiVersion }) => apiVersion))].filter((each) => each.includes("/"));
  return versions.map((groupVersion) => {
    const [name = "", version = ""] = groupVersion.split("/");
    return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
  });
}

function resourcesOf(kinds: readonly Served[], apiVersion: string): object {
  const own = kinds.filter((each) => each.apiVersion === apiVersion);
  const resources = own.map(({ plural, kind, namespaced }) => ({ name: plural, kind, namespaced, verbs: VERBS }));
  return { kind: "APIResourceList", groupVersion: apiVersion, resources };
}

function ok(value: object): KubeResponse {
  return { status: 200, text: JSON.stringify(value) };
}

function notFound(): KubeResponse {
  const message = "the server could not find the requested resource";
  return { status: 404, text: JSON.stringify({ kind: "Status", message, reason: "NotFound", code: 404 }) };
}
