/** The injectors of the meshes in a cluster that insert the sidecar, and what they should insert. */
import * as v from "valibot";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";
import { defaultImage } from "../../release/workloads/image.ts";
import { agentImage, agentsPath } from "../../upgrade/engine/agents.ts";
import type { PlanningSite } from "../../upgrade/engine/step.ts";
import type { FilterForm } from "../mesh/envoy-filter.ts";
import { injectorPath, type MeshPlace, readMeshVersion } from "../mesh/injector.ts";
import { inRelease, insertSidecar, sidecarImageIn } from "../mesh/insert-sidecar.ts";
import { meshMinor, nearestMinorText, rowOf } from "../mesh/mesh-minor.ts";
import { hasFormerSidecar, removeFormerSidecar } from "./remove-former.ts";

export interface Injector {
  readonly path: string;
  /** `ConfigMap istio-system/istio-sidecar-injector` */
  readonly title: string;
  readonly config: string;
  /** With the sidecar of this release, or why that is not possible. */
  readonly wanted: WantedTemplate | { readonly problem: PluginError };
}

export interface WantedTemplate {
  readonly config: string;
  readonly image: string;
  /** Of the filter that belongs to it. */
  readonly filter: FilterForm;
  /** Which version's template it is, if it is not that of the mesh. */
  readonly note?: string;
}

const configMap = v.object({ data: v.object({ config: v.string() }) });
const controlPlane = v.object({
  metadata: v.object({ namespace: v.string(), labels: v.optional(v.record(v.string(), v.string()), {}) }),
});

/** Only those that insert a sidecar, of this or an earlier release. `earlierSocket`: that of filters of an earlier release. */
export async function readInjectors(
  site: PlanningSite,
  earlierSocket: string | undefined,
): Promise<readonly Injector[]> {
  const injectors: Injector[] = [];
  for (const place of await meshPlaces(site.objects)) {
    const path = injectorPath(place);
    const decoded = decodeShape(configMap, await site.objects.read(path));
    if (!decoded.ok) continue;
    const { config } = decoded.value.data;
    if (sidecarImageIn(config) === undefined && !hasFormerSidecar(config)) continue;
    const title = `ConfigMap ${place.namespace}/${path.slice(path.lastIndexOf("/") + 1)}`;
    injectors.push({ path, title, config, wanted: await wantedFor(site, place, { config, earlierSocket }) });
  }
  return injectors;
}

const USUAL: MeshPlace = { namespace: "istio-system" };

/** One for each control plane; the usual one if none is found. */
async function meshPlaces(objects: ClusterObjects): Promise<readonly MeshPlace[]> {
  const found = await objects.list("/apis/apps/v1/deployments", { labelSelector: "app=istiod" });
  const places = found.flatMap((item): readonly MeshPlace[] => {
    const decoded = decodeShape(controlPlane, item);
    if (!decoded.ok) return [];
    const { namespace, labels } = decoded.value.metadata;
    const revision = labels["istio.io/rev"];
    return [{ namespace, ...(revision === undefined || revision === "default" ? {} : { revision }) }];
  });
  return places.length === 0 ? [USUAL] : places;
}

interface PresentTemplate {
  readonly config: string;
  readonly earlierSocket: string | undefined;
}

async function wantedFor(
  site: PlanningSite,
  place: MeshPlace,
  { config, earlierSocket }: PresentTemplate,
): Promise<Injector["wanted"]> {
  try {
    const version = await readMeshVersion(site.objects, place);
    const minor = meshMinor(version);
    const own = sidecarImageIn(config);
    const image = own === undefined ? await imageOfAgents(site) : inRelease(own, site.facts.target);
    const inserted = insertSidecar(removeFormerSidecar(config), { minor, image, earlierSocket });
    const note = nearestMinorText(version);
    return { config: inserted.config, image, filter: rowOf(minor).filter, ...(note === undefined ? {} : { note }) };
  } catch (failure) {
    if (!(failure instanceof PluginError) || failure.kind === "api-unavailable") throw failure;
    return { problem: failure };
  }
}

/** That of the node agents, if they are of this release already: it may come from a private registry. */
async function imageOfAgents({ objects, facts }: PlanningSite): Promise<string> {
  const path = await agentsPath(objects, facts.namespace);
  const image = path === undefined ? undefined : agentImage(await objects.read(path));
  if (image?.endsWith(`:${facts.target}`)) return image;
  return defaultImage(facts.target);
}
