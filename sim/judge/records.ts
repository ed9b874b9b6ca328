/**
 * The product's records as they are stored, read without a request: directly from a simulated datastore, or from the
 * objects of the orchestrator's API by the product's own mapping.
 */
import type { Entry } from "../../src/datastore/datastore.ts";
import type { ApiObject } from "../../src/datastore/kube/api.ts";
import { type KindMapping, mappingsBelow } from "../../src/datastore/kube/kind-mapping.ts";
import { productMapping } from "../../src/datastore/kube/product-mapping.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";

export interface Records {
  /** Another one after every write. */
  readonly revision: string;
  /** Only the orchestrator's API contains services. */
  readonly hasServices: boolean;
  /** An unchanged record is the same object each time. */
  under(prefix: string): readonly Entry[];
}

/** The decoded records below the prefixes: the same list again while none of them changes. */
export function unchangedWhileSame<Value>(
  prefixes: readonly string[],
  decode: (entry: Entry) => Value | undefined,
): (records: Records) => readonly Value[] {
  const decoded = new WeakMap<Entry, { readonly value: Value | undefined }>();
  let before: readonly Entry[] | undefined;
  let values: readonly Value[] = [];
  return (records) => {
    const entries = prefixes.flatMap((prefix) => records.under(prefix));
    if (before?.length === entries.length && before.every((entry, index) => entry === entries[index])) return values;
    before = entries;
    values = entries.flatMap((entry) => {
      const known = decoded.get(entry) ?? { value: decode(entry) };
      decoded.set(entry, known);
      return known.value === undefined ? [] : [known.value];
    });
    return values;
  };
}

export function recordsOfTable(table: MemoryTable): Records {
  return {
    get revision() {
      return table.revision;
    },
    hasServices: false,
    under: (prefix) => table.answer({ kind: "prefix", prefix }),
  };
}

/** The objects of an API server; an unchanged object is the same each time. */
export interface ApiObjects {
  readonly revision: string;
  /** By path: `/api/v1/namespaces/default/pods/web`. */
  all(): Iterable<{ readonly path: string; readonly object: ApiObject }>;
}

export function recordsOfApi(api: ApiObjects): Records {
  const mappings = productMapping(() => "");
  const read = new Map<KindMapping, WeakMap<ApiObject, { readonly entry: Entry | undefined }>>();
  const entryOf = (mapping: KindMapping, object: ApiObject): Entry | undefined => {
    const known = read.get(mapping) ?? new WeakMap();
    read.set(mapping, known);
    const seen = known.get(object);
    if (seen !== undefined) return seen.entry;
    const record = mapping.record(object);
    const entry =
      record?.value === undefined
        ? undefined
        : { key: record.key, value: record.value, revision: object.metadata.resourceVersion };
    known.set(object, { entry });
    return entry;
  };
  const objectsIn = byCollection(api);
  return {
    get revision() {
      return api.revision;
    },
    hasServices: true,
    // Selectors of collections only narrow down what a list returns.
    under: (prefix) =>
      mappingsBelow(mappings, prefix)
        .flatMap(({ mapping, prefix: own }) =>
          mapping
            .collections(own)
            .flatMap(({ path }) => objectsIn(path).flatMap((object) => entryOf(mapping, object) ?? [])),
        )
        .filter(({ key }) => key.startsWith(prefix)),
  };
}

const IN_NAMESPACE = /\/namespaces\/[^/]+(?=\/)/;

/** Sorts the objects by their collections, again after each change. */
function byCollection(api: ApiObjects): (path: string) => readonly ApiObject[] {
  const collectionsOf = new Map<string, readonly string[]>();
  let sortedAt: string | undefined;
  let sorted = new Map<string, ApiObject[]>();
  const sort = () => {
    sorted = new Map();
    for (const { path, object } of api.all()) {
      let collections = collectionsOf.get(path);
      if (collections === undefined) {
        const parent = path.slice(0, path.lastIndexOf("/"));
        collections = [...new Set([parent, parent.replace(IN_NAMESPACE, "")])];
        collectionsOf.set(path, collections);
      }
      for (const each of collections) {
        const members = sorted.get(each);
        if (members) members.push(object);
        else sorted.set(each, [object]);
      }
    }
    sortedAt = api.revision;
  };
  return (path) => {
    if (sortedAt !== api.revision) sort();
    return sorted.get(path) ?? [];
  };
}
