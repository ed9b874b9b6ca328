/**
 * A pool with blocks is not deleted: whoever creates the first block in it adds a
 * finalizer, at the version of the pool that it was decided from. From then on a
 * deletion only marks the pool, which ends assignments from it, until the
 * product itself deletes the empty pool and takes the finalizer away.
 */
import { identity } from "../../identity.ts";
import type { ApiObject } from "./api.ts";
import type { Protection, Writing } from "./kind-mapping.ts";

export const POOL_FINALIZER = `${identity.labelPrefix}blocks`;

export const poolProtection: Protection = {
  isProtected: ({ metadata }) => finalizersOf(metadata).includes(POOL_FINALIZER),
  protect: (path, pool) => settingFinalizers(path, pool, [...finalizersOf(pool.metadata), POOL_FINALIZER]),
  release: (path, pool) =>
    settingFinalizers(
      path,
      pool,
      finalizersOf(pool.metadata).filter((name) => name !== POOL_FINALIZER),
    ),
};

function finalizersOf({ finalizers = [] }: ApiObject["metadata"]): readonly string[] {
  return finalizers;
}

function settingFinalizers(path: string, { metadata }: ApiObject, finalizers: readonly string[]): Writing {
  const { uid, resourceVersion } = metadata;
  return {
    request: {
      method: "PATCH",
      path,
      contentType: "application/merge-patch+json",
      body: JSON.stringify({ metadata: { uid, resourceVersion, finalizers } }),
    },
    isResult: (found) => Bun.deepEquals([...finalizersOf(found.metadata)], [...finalizers]),
  };
}
