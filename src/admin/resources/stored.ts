/** Resources of the public kinds as they lie in the datastore, each with its revision as `resourceVersion`. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/read-all.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { PublicKind } from "../../model/kinds.ts";
import type { Resource } from "../../model/resource.ts";

export interface Stored {
  readonly kind: PublicKind;
  readonly resource: Resource;
  readonly key: string;
  readonly revision: string;
  /** The text in the datastore. */
  readonly text: string;
}

export async function readOne(store: Datastore, kind: PublicKind, name: ResourceName): Promise<Stored | undefined> {
  const { answers } = await store.read([{ kind: "key", key: kind.key(name) }]);
  const entry = answers[0]?.[0];
  return entry && decodeEntry(kind, entry);
}

/** All of the kind, or of the namespace, in the order of their names. */
export async function readAll(store: Datastore, kind: PublicKind, namespace?: string): Promise<readonly Stored[]> {
  return (await readAllEntries(store, kind.prefix(namespace))).map((entry) => decodeEntry(kind, entry));
}

function decodeEntry(kind: PublicKind, { key, value, revision }: Entry): Stored {
  const read = kind.codec.read(value, key);
  const resource = { ...read, metadata: { ...read.metadata, resourceVersion: revision } };
  return { kind, resource, key, revision, text: value };
}
