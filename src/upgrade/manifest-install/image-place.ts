/** Where a user pulls images from. Pure. */
import { identity } from "../../identity.ts";
import type { MergeConflict } from "../merge/three-way.ts";

const PUBLISHED = /^(?:docker\.io\/|quay\.io\/)?$/;

/**
 * The image of the release in the registry of the user's: `registry.example.org/mirror/vendor/node:v3.26.1` becomes
 * `registry.example.org/mirror/vendor:v3.29.0`. The release's own if the user has the published image. If the user has given
 * the image another name, the winner decides.
 */
export function imageInPlaceOf(live: string | undefined, release: string, winner: "mine" | "theirs"): string {
  if (live === undefined) return release;
  if (isRenamed(live, release)) return winner === "mine" ? besideOf(live, release) : release;
  const registry = registryOf(live);
  const ownRegistry = registryOf(release);
  if (registry === undefined || ownRegistry === undefined || registry === ownRegistry) return release;
  return PUBLISHED.test(registry) ? release : `${registry}${release.slice(ownRegistry.length)}`;
}

/** An image with another name says nothing about where that of the release is. */
export function imageConflicts(path: string, live: string | undefined, release: string): readonly MergeConflict[] {
  if (live === undefined || !isRenamed(live, release)) return [];
  return [{ path: `${path} (with "mine": ${besideOf(live, release)}, which has to be there)`, live, release }];
}

function isRenamed(live: string, release: string): boolean {
  return registryOf(live) === undefined && registryOf(release) !== undefined;
}

/** `harbor.example.org/infra/vendor-node:v3.26.1` becomes `harbor.example.org/infra/vendor:v3.29.0`. */
function besideOf(live: string, release: string): string {
  const directory = live.replace(/@.*$/, "").replace(/[^/]*$/, "");
  return `${directory}${release.slice((registryOf(release) ?? "").length)}`;
}

/** What comes before the product's part; `undefined` if the image is not the product's. */
function registryOf(image: string): string | undefined {
  const name = image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
  const { product } = identity;
  const former = new RegExp(`^(.*?)${product}/(?:node|cni|kube-controllers|pod2daemon-flexvol|typha)$`).exec(name);
  const present = new RegExp(`^(.*?)${product}$`).exec(name);
  return former?.[1] ?? present?.[1];
}
