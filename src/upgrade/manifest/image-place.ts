/** Where a user pulls images from. Pure. */
import { identity } from "../../identity.ts";

const PUBLISHED = /^(?:docker\.io\/|quay\.io\/)?$/;

/**
 * The image of the release in the registry of the user's: `registry.example.org/mirror/vendor/node:v3.26.1` becomes
 * `registry.example.org/mirror/vendor:v3.29.0`. The release's own if the user has the published image.
 */
export function imageInPlaceOf(live: string | undefined, release: string): string {
  if (live === undefined) return release;
  const registry = registryOf(live);
  const ownRegistry = registryOf(release);
  if (registry === undefined || ownRegistry === undefined || registry === ownRegistry) return release;
  return PUBLISHED.test(registry) ? release : `${registry}${release.slice(ownRegistry.length)}`;
}

/** What comes before the product's part; `undefined` if the image is not the product's. */
function registryOf(image: string): string | undefined {
  const name = image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
  const { product } = identity;
  const former = new RegExp(`^(.*?)${product}/(?:node|cni|kube-controllers|pod2daemon-flexvol|typha)$`).exec(name);
  const present = new RegExp(`^(.*?)${product}$`).exec(name);
  return former?.[1] ?? present?.[1];
}
