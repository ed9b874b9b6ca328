/** The release of the API server, by which the product knows what it can serve. */
import { compareReleases, isRelease } from "../model/release.ts";
import type { ClusterObjects } from "./objects.ts";

/** `v1.30.4+k3s1`; "unknown" if the server does not say. */
export async function readServerVersion(objects: Pick<ClusterObjects, "read">): Promise<string> {
  return String((await objects.read("/version"))?.["gitVersion"] ?? "unknown");
}

/** Why no token says of which node its holder is, in words; `undefined`: tokens can be bound to Nodes. */
export function tokenBindingProblem(version: string): string | undefined {
  if (!isServerBefore(version, FIRST_WITH_BOUND_TOKENS)) return undefined;
  return `Kubernetes ${version} does not bind tokens to Nodes; ${FIRST_WITH_BOUND_TOKENS} and later do`;
}

const FIRST_WITH_BOUND_TOKENS = "v1.31.0";

/** A version that cannot be read is before none. */
export function isServerBefore(version: string, first: string): boolean {
  const plain = version.replace(/[+-].*$/, "");
  return isRelease(plain) && compareReleases(plain, first) < 0;
}
