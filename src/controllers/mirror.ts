/**
 * A record of the datastore that is a copy of an object of the orchestrator: what to write so that it is one again. Pure.
 *
 * Both have the same key. A record whose key no object of the orchestrator can have belongs to a user and is left alone.
 */
import type { Change } from "../datastore/datastore.ts";
import type { HeldRecord } from "../datastore/replica/kind-snapshot.ts";
import type { Metadata } from "../model/metadata.ts";
import type { Resource, ResourceCodec } from "../model/resource.ts";

export interface Mirror {
  readonly codec: Pick<ResourceCodec<Resource>, "kind" | "write">;
  /** Whether the record with this name is a copy, by its name alone. */
  readonly owns: (name: string) => boolean;
}

/** What the key needs; `undefined` if the copy is right, or the record is not one. */
export function mirrorChange(
  { codec, owns }: Mirror,
  {
    key,
    wanted,
    stored,
  }: { readonly key: string; readonly wanted: Resource | undefined; readonly stored: HeldRecord<Resource> | undefined },
): Change | undefined {
  if (!owns(key.slice(key.lastIndexOf("/") + 1))) return undefined;
  if (wanted === undefined) {
    return stored === undefined ? undefined : { kind: "delete", key, revision: stored.revision };
  }
  if (stored === undefined) return { kind: "create", key, value: codec.write(wanted) };
  if (stored.kind === "readable" && isCopy(wanted, stored.value)) return undefined;
  return { kind: "update", key, value: codec.write(wanted), revision: stored.revision };
}

function isCopy(wanted: Resource, stored: Resource): boolean {
  return Bun.deepEquals(wanted.spec, stored.spec) && Bun.deepEquals(copied(wanted.metadata), copied(stored.metadata));
}

/** The metadata that somebody may have edited. */
function copied({ name, namespace, labels = {}, annotations = {} }: Metadata): Metadata {
  return { name, ...(namespace === undefined ? {} : { namespace }), labels, annotations };
}
