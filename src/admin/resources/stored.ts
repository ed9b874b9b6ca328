/** Reads resources of the public kinds from the datastore, each with its revision as `resourceVersion`. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { Resource } from "../../model/resource.ts";
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
  const givers = new Map<AdminKind, readonly Resource[]>();
  for (const kind of giversOf(all.map((stored) => stored.kind))) {
    const { readable } = await findAll(store, kind);
    givers.set(
      kind,
      readable.map(({ resource }) => resource),
    );
  }
  return all.map((stored) => inheriting(stored, givers));
}

/** `givers`: all resources of the kinds that others inherit from. */
export function inheriting(stored: Stored, givers: ReadonlyMap<AdminKind, readonly Resource[]>): Stored {
  const { kind, resource } = stored;
  const { inheritedLabels } = kind;
  if (inheritedLabels === undefined) return stored;
  const lists = inheritedLabels.from.flatMap((from) => {
    const list = givers.get(from);
    return list === undefined ? [] : [list];
  });
  return lists.length < inheritedLabels.from.length
    ? stored
    : { ...stored, labels: inheritedLabels.of(resource, ...lists) };
}

/** The kinds that resources of these kinds inherit labels from. */
export function giversOf(kinds: readonly AdminKind[]): readonly AdminKind[] {
  return [...new Set(kinds.flatMap(({ inheritedLabels }) => inheritedLabels?.from ?? []))];
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
