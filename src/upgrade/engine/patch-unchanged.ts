/** A JSON patch that tests the version of an object: if it is refused, was it the test, or does the server not accept the result? */
import { PluginError } from "../../errors.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";

/** How often it is tried if others write the object at the same time. */
export const ATTEMPTS = 5;

/**
 * `undefined` if there is no such object. Fails with `resource-changed` if somebody else has changed it since it was read, and
 * with the server's words if nobody has: an admission policy may refuse the content that it has.
 */
export async function patchUnchanged(
  objects: ClusterObjects,
  path: string,
  { live, patch }: { readonly live: Fields; readonly patch: readonly object[] },
): Promise<Fields | undefined> {
  try {
    return await objects.patchJson(path, patch);
  } catch (failure) {
    if (!(failure instanceof PluginError) || failure.kind !== "resource-invalid") throw failure;
    if (versionOf(await objects.read(path)) === versionOf(live)) throw failure;
    throw new PluginError("resource-changed", `Cannot change ${quoted(path)}: somebody else has changed it meanwhile`, {
      cause: failure,
    });
  }
}

export function isOutdated(failure: unknown): boolean {
  return failure instanceof PluginError && failure.kind === "resource-changed";
}

function versionOf(object: Fields | undefined): unknown {
  const metadata = object?.["metadata"];
  return isObject(metadata) ? metadata["resourceVersion"] : undefined;
}
