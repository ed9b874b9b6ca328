/** What a cluster has of application layer policy: injectors, filters of earlier releases, workloads with an older sidecar. */
import type { PlanningSite } from "../../upgrade/engine/step.ts";
import { type FormerFilter, formerSocketOf, readFormerFilters } from "./former-filters.ts";
import { type Injector, readInjectors } from "./injectors.ts";
import type { MeshPod } from "./mesh-pods.ts";
import {
  isOlderThan,
  notRestarted,
  type OutdatedWorkload,
  outdatedWorkloads,
  workloadPath,
} from "./outdated-workloads.ts";
import { readMeshPods, readOwners } from "./read-mesh-pods.ts";

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
