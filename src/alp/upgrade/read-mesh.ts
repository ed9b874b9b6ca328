/** What a cluster has of application layer policy: injectors, filters of earlier releases, workloads with an older sidecar. */
import { FORMER_SIDECAR, identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { PlanningSite } from "../../upgrade/engine/step.ts";
import type { MeshPod } from "../mesh/mesh-pods.ts";
import { readMeshPods, readOwners } from "../mesh/read-mesh-pods.ts";
import { type FormerFilter, formerSocketOf, readFormerFilters } from "./former-filters.ts";
import { type Injector, readInjectors } from "./injectors.ts";
import {
  isOlderThan,
  notRestarted,
  type OutdatedWorkload,
  outdatedWorkloads,
  workloadPath,
} from "./outdated-workloads.ts";

const SIDECARS: readonly string[] = [FORMER_SIDECAR, identity.sidecar];
const MESH_NAMESPACE = "istio-system";

/** Whether pods have a sidecar, of this or an earlier release, or the injector's template has one. */
export async function usesSidecars(objects: ClusterObjects): Promise<boolean> {
  const maps = await objects.list(`/api/v1/namespaces/${MESH_NAMESPACE}/configmaps`);
  const isInTemplate = maps.some((map) => {
    if (!String(fieldsIn(map, "metadata")["name"]).startsWith("istio-sidecar-injector")) return false;
    const text = JSON.stringify(map["data"] ?? {});
    return SIDECARS.some((sidecar) => text.includes(sidecar));
  });
  return isInTemplate || (await objects.list("/api/v1/pods")).some(hasSidecar);
}

function hasSidecar(pod: Fields): boolean {
  const { containers, initContainers } = fieldsIn(pod, "spec");
  return [containers, initContainers].some(
    (list) => Array.isArray(list) && list.some((item) => isObject(item) && SIDECARS.includes(String(item["name"]))),
  );
}

function fieldsIn(object: Fields, name: string): Fields {
  const value = object[name];
  return isObject(value) ? value : {};
}

export interface Mesh {
  readonly filters: readonly FormerFilter[];
  readonly injectors: readonly Injector[];
  readonly outdated: Outdated;
}

export async function readMesh(site: PlanningSite): Promise<Mesh> {
  const filters = await readFormerFilters(site.objects);
  const injectors = await readInjectors(site, formerSocketOf(filters));
  return { filters, injectors, outdated: await readOutdated(site, isOlderThan(site.facts.target), injectors) };
}

export interface Outdated {
  readonly restarted: readonly OutdatedWorkload[];
  /** What a restart does not help. */
  readonly others: readonly { readonly workload: OutdatedWorkload; readonly reason: string }[];
}

export async function readOutdated(
  { objects }: PlanningSite,
  isOutdated: (pod: MeshPod) => boolean,
  injectors: readonly Injector[],
): Promise<Outdated> {
  const pods = await readMeshPods(objects, undefined, () => undefined);
  const owners = await readOwners(objects, undefined, pods.filter(isOutdated));
  const restarted: OutdatedWorkload[] = [];
  const others: { readonly workload: OutdatedWorkload; readonly reason: string }[] = [];
  for (const workload of outdatedWorkloads(pods, owners, isOutdated)) {
    const path = workloadPath(workload);
    const object = path === undefined ? undefined : await objects.read(path);
    const uninjected = injectors.length === 0 ? "no injector of a mesh inserts one: see `alp template`" : undefined;
    const reason = notRestarted(workload, object) ?? uninjected;
    if (reason === undefined) restarted.push(workload);
    else others.push({ workload, reason });
  }
  return { restarted, others };
}
