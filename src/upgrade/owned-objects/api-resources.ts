/** Every resource that the API serves and that can have owner references: the search has to look at all of them. */
import { PluginError } from "../../errors.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";

export interface ApiResource {
  /** Empty for the core group. */
  readonly group: string;
  /** `v1`, `apps/v1` */
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** `/apis/apps/v1` */
  readonly root: string;
}

/** An API that cannot be asked: whatever it stores would be missed. */
export class BrokenApi extends PluginError {
  constructor(
    readonly group: string,
    reason: string,
  ) {
    super("api-unavailable", `Cannot search the API group "${group}" for owner references: ${reason}`, {
      details: `repair or delete its APIService, or leave the group out with --ignore-group=${group}`,
    });
  }
}

/** Each resource once, in one version. Throws a BrokenApi if an API that is not ignored cannot be asked. */
export async function readApiResources(
  objects: ClusterObjects,
  ignoredGroups: readonly string[],
): Promise<readonly ApiResource[]> {
  const broken = brokenGroups(await objects.list("/apis/apiregistration.k8s.io/v1/apiservices"));
  for (const { group, reason } of broken) if (!ignoredGroups.includes(group)) throw new BrokenApi(group, reason);
  const groups = groupsIn(await objects.read("/apis")).filter(({ name }) => !ignoredGroups.includes(name));
  const core = { name: "", versions: ["v1"] };
  const lists = await Promise.all([core, ...groups].map((group) => readGroup(objects, group)));
  return lists.flat();
}

/** Groups of aggregated APIs that are not available, with what the API server says about them. Pure. */
export function brokenGroups(
  apiServices: readonly Fields[],
): readonly { readonly group: string; readonly reason: string }[] {
  return apiServices.flatMap((service) => {
    const spec = fieldsOf(service["spec"]);
    if (!isObject(spec["service"])) return [];
    const available = arrayOf(fieldsOf(service["status"])["conditions"]).find(({ type }) => type === "Available");
    if (available?.["status"] === "True") return [];
    const { name } = fieldsOf(service["metadata"]);
    const state = available?.["message"] ?? "it has not reported yet";
    return [{ group: String(spec["group"]), reason: `APIService "${name}" is not available: ${state}` }];
  });
}

interface ApiGroup {
  readonly name: string;
  /** The preferred one first. */
  readonly versions: readonly string[];
}

function groupsIn(list: Fields | undefined): readonly ApiGroup[] {
  return arrayOf(list?.["groups"]).map((group) => {
    const preferred = fieldsOf(group["preferredVersion"])["version"];
    const versions = arrayOf(group["versions"]).map(({ version }) => String(version));
    return {
      name: String(group["name"]),
      versions: [...new Set([...(typeof preferred === "string" ? [preferred] : []), ...versions])],
    };
  });
}

async function readGroup(objects: ClusterObjects, { name, versions }: ApiGroup): Promise<readonly ApiResource[]> {
  const found = new Map<string, ApiResource>();
  for (const version of versions) {
    const apiVersion = name === "" ? version : `${name}/${version}`;
    const root = name === "" ? `/api/${version}` : `/apis/${apiVersion}`;
    const list = await objects.read(root).catch((failure: unknown) => {
      throw new BrokenApi(name, failure instanceof Error ? failure.message : String(failure));
    });
    for (const resource of resourcesIn(list, { group: name, apiVersion, root })) {
      if (!found.has(resource.plural)) found.set(resource.plural, resource);
    }
  }
  return [...found.values()];
}

/** Those that can be listed and changed. Events come and go, and are owned by nothing. Pure. */
export function resourcesIn(
  list: Fields | undefined,
  place: Pick<ApiResource, "group" | "apiVersion" | "root">,
): readonly ApiResource[] {
  return arrayOf(list?.["resources"]).flatMap(({ name, kind, namespaced, verbs }) => {
    const plural = String(name);
    const isStored = ["list", "patch"].every((verb) => Array.isArray(verbs) && verbs.includes(verb));
    if (!isStored || plural.includes("/") || plural === "events") return [];
    return [{ ...place, plural, kind: String(kind), isNamespaced: namespaced === true }];
  });
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

function arrayOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
