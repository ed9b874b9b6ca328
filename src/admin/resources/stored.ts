/** Reads resources of the public kinds from the datastore, each with its revision as `resourceVersion`. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { AdminKind, StoredResource } from "../kinds/kind.ts";
import { readOrExplain } from "./unreadable-remedy.ts";

export interface Stored extends StoredResource {
  readonly kind: AdminKind;
}

export async function readOne(store: Datastore, kind: AdminKind, name: ResourceName): Promise<Stored | undefined> {
  return allReadable(await findOne(store, kind, name))[0];
}

/** All resources of the kind, or of the namespace, ordered by name. */
export async function readAll(store: Datastore, kind: AdminKind, namespace?: string): Promise<readonly Stored[]> {
  return allReadable(await findAll(store, kind, namespace));
}

/** Like `readOne`, but returns an unreadable resource instead of failing. */
export async function findOne(store: Datastore, kind: AdminKind, name: ResourceName): Promise<ReadEach<Stored>> {
  const { answers } = await store.read([{ kind: "key", key: kind.key(name) }]);
  return readEach(answers.flat(), (entry) => decodeEntry(kind, entry));
}

/** Like `readAll`, but returns unreadable resources separately instead of failing. */
export async function findAll(store: Datastore, kind: AdminKind, namespace?: string): Promise<ReadEach<Stored>> {
  return readEach(await readAllEntries(store, kind.prefix(namespace)), (entry) => decodeEntry(kind, entry));
}

function allReadable({ readable, unreadable }: ReadEach<Stored>): readonly Stored[] {
  if (unreadable[0]) throw unreadable[0].failure;
  return readable;
}

export function decodeEntry(kind: AdminKind, entry: Entry): Stored {
  const { key, value, revision } = entry;
  const read = readOrExplain(entry, () => kind.codec.read(value, key));
  const resource = { ...read, metadata: { ...read.metadata, resourceVersion: revision } };
  return { kind, resource, key, revision, text: value };
}
