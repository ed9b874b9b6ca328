/** An installation from a published manifest of an earlier release, as `kubectl apply` left it. */

import { requireOk } from "../../../src/kube/require-ok.ts";
import type { KubeObject } from "../../../src/release/kube-object.ts";
import { objectPath } from "../../../src/release/object-kinds.ts";
import { type StockVariant, stockManifest } from "../../../src/upgrade/published/stock-manifest.ts";
import type { AnyObject } from "./former-object.ts";
import type { OlderCluster } from "./older-cluster.ts";

export interface FormerManifest extends StockVariant {
  readonly version: string;
  /** What the user has changed in the file. */
  readonly edit?: (objects: AnyObject[]) => void;
}

/** Returns the paths of what was created. */
export async function layOutManifest(
  { client }: Pick<OlderCluster, "client">,
  { version, edit, ...variant }: FormerManifest,
): Promise<readonly string[]> {
  const stock = await stockManifest(version, variant);
  const objects = structuredClone(stock ?? []) as KubeObject[];
  edit?.(objects);
  for (const object of objects) {
    const path = objectPath(object);
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(object) };
    const request = {
      method: "POST" as const,
      path: path.slice(0, path.lastIndexOf("/")),
      query: { fieldManager: "kubectl-client-side-apply" },
      body: JSON.stringify({ ...object, metadata: { ...object.metadata, annotations } }),
    };
    requireOk(await client.request(request), request);
  }
  return objects.map(objectPath);
}
