/** Reads the objects of an installation from a manifest. */
import type { ClusterObjects } from "../../../kube/objects.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import { readObjects } from "../../engine/observe-objects.ts";
import { FLANNEL_BINDING } from "./flannel.ts";
import { type LiveManifest, PATHS } from "./live-manifest.ts";

export async function readLiveManifest(objects: ClusterObjects, release: readonly KubeObject[]): Promise<LiveManifest> {
  const { daemonSets, ...others } = PATHS;
  const paths = new Set([...daemonSets, ...Object.values(others), FLANNEL_BINDING, ...release.map(objectPath)]);
  const found = await readObjects(objects, [...paths]);
  const live = new Map([...found].flatMap(([path, object]) => (object === undefined ? [] : [[path, object] as const])));
  return live;
}
