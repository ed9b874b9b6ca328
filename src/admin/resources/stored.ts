/** Reads resources of the public kinds from the datastore, each with its revision as `resourceVersion`. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { AdminKind, StoredResource } from "../kinds/kind.ts";
import { readOrExplain } from "./unreadable-remedy.ts";

export interface Stored extends StoredResource {
  readonly kind: AdminKind;
  /** Own and inherited; absent: only its own count. */
  readonly labels?: Readonly<Record<string, string>>;
}

export function labelsOfStored({ labels, resource }: Stored): Readonly<Record<string, string>> {
  return labels ?? resource.metadata.labels ?? {};
}

/** For those who look at labels: with the ones that the resources inherit. */
export async function withInheritedLabels(store: Datastore, all: readonly Stored[]): Promise<readonly Stored[]> {
  const labels = new Map<Stored, Stored["labels"]>();
  for (const [kind, own] of Map.groupBy(all, (stored) => stored.kind)) {
    const inherited = await kind.inheritedLabels?.(
      store,
      own.map(({ resource }) => resource),
    );
    own.forEach((stored, index) => {
      const more = inherited?.[index];
      if (more !== undefined) labels.set(stored, { ...stored.resource.metadata.labels, ...more });
    });
  }
  return all.map((stored) => {
    const own = labels.get(stored);
    return own === undefined ? stored : { ...stored, labels: own };
  });
}

export async function readOne(store: Datastore, kind: AdminKind, name: ResourceName): Promise<Stored | undefined> {
  return allReadable(await findOne(store, kind, name))[0];
}

/** All resources of the kind, ordered by key. `decode`: see `DecodedOnce`. */
export async function readAll(
  store: Datastore,
  kind: AdminKind,
  decode: typeof decodeEntry = decodeEntry,
): Promise<readonly Stored[]> {
  return allReadable(readEach(await readAllEntries(store, kind.prefix()), (entry) => decode(kind, entry)));
}

/** For a command that reads all resources of a kind many times: a resource is decoded again only after it has changed. */
export class DecodedOnce {
  private readonly known = new Map<string, Stored>();

  readonly decode = (kind: AdminKind, entry: Entry): Stored => {
    const known = this.known.get(entry.key);
    if (known?.revision === entry.revision && known.text === entry.value) return known;
    const stored = decodeEntry(kind, entry);
    this.known.set(entry.key, stored);
    return stored;
  };
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
