/**
 * Lists collections, page by page of the API, and cuts the result into the pages
 * that a reader asks for.
 *
 * The API sorts by name, a datastore by key, so a page cannot be a page of the
 * API. What is left of a list is kept for the reader's next page: all pages of
 * one list have its revision, and a list of many pages is one list.
 */
import type { Entry, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { type Api, type ApiObject, parseList, requestOf } from "./api.ts";
import { type Collection, type KindMapping, mappingsBelow } from "./kind-mapping.ts";

const OBJECTS_IN_ONE_RESPONSE = 500;
/** A list whose continuation has expired starts again. */
const STARTS = 5;
const LISTS_KEPT = 8;

export interface Listed {
  readonly revision: string;
  readonly entries: readonly Entry[];
}

type Prefix = Extract<Wanted, { readonly kind: "prefix" }>;
type WholePrefix = Pick<Prefix, "prefix" | "node">;

export interface ListsMeans {
  readonly api: Api;
  readonly mappings: readonly KindMapping[];
  /** The record of an object, if it is one. */
  readonly entryOf: (mapping: KindMapping, object: ApiObject) => Entry | undefined;
}

export class Lists {
  /** What follows the last page of a list, by what was listed and its last key. */
  private readonly rest = new Map<string, Listed>();
  /** Lists that were requested before they are read, by prefix. */
  private readonly prefetched = new Map<string, Promise<Listed>>();

  constructor(private readonly means: ListsMeans) {}

  prefetch(prefix: string): void {
    const listing = this.list({ prefix });
    listing.catch(() => {});
    this.prefetched.set(prefix, listing);
  }

  async read({ limit, after, ...wanted }: Prefix): Promise<Listed> {
    const kept = after === undefined ? this.takePrefetched(wanted) : this.takeRest(wanted, after);
    const { revision, entries } = (await kept) ?? (await this.list(wanted));
    const following = after === undefined ? entries : entries.filter(({ key }) => compareKeys(key, after) > 0);
    // After a full page the reader asks for another one, which may be empty: it belongs to the same list.
    if (limit === undefined || following.length < limit) return { revision, entries: following };
    const page = following.slice(0, limit);
    this.keepRest(wanted, page.at(-1)?.key ?? "", { revision, entries: following.slice(limit) });
    return { revision, entries: page };
  }

  private async list({ prefix, node }: WholePrefix): Promise<Listed> {
    const { api, mappings, entryOf } = this.means;
    const parts = mappingsBelow(mappings, prefix).flatMap((each) =>
      each.mapping.collections(each.prefix, node).map((collection) => ({ mapping: each.mapping, collection })),
    );
    const lists = await Promise.all(parts.map(({ collection }) => listCollection(api, collection)));
    const entries = lists.flatMap(({ items }, index) => {
      const mapping = parts[index]?.mapping;
      return mapping === undefined ? [] : items.flatMap((object) => entryOf(mapping, object) ?? []);
    });
    return {
      revision: lowestRevision(lists.map(({ revision }) => revision)),
      entries: entries.filter(({ key }) => key.startsWith(prefix)).toSorted((a, b) => compareKeys(a.key, b.key)),
    };
  }

  /** Once: the next read is an attempt after a lost race. */
  private takePrefetched({ prefix, node }: WholePrefix): Promise<Listed> | undefined {
    if (node !== undefined) return undefined;
    const listing = this.prefetched.get(prefix);
    this.prefetched.delete(prefix);
    return listing;
  }

  private takeRest(wanted: WholePrefix, after: string): Listed | undefined {
    const name = placeOf(wanted, after);
    const kept = this.rest.get(name);
    this.rest.delete(name);
    return kept;
  }

  private keepRest(wanted: WholePrefix, last: string, rest: Listed): void {
    this.rest.set(placeOf(wanted, last), rest);
    const [oldest] = this.rest.keys();
    if (this.rest.size > LISTS_KEPT && oldest !== undefined) this.rest.delete(oldest);
  }
}

function placeOf({ prefix, node }: WholePrefix, last: string): string {
  return JSON.stringify([prefix, node, last]);
}

/** The revision that all of them have reached; "0", from which nothing can be watched, if there are none. */
export function lowestRevision(revisions: readonly string[]): string {
  const [first = "0", ...others] = revisions;
  return others.reduce((lowest, each) => (BigInt(each) < BigInt(lowest) ? each : lowest), first);
}

interface WholeList {
  readonly revision: string;
  readonly items: readonly ApiObject[];
}

async function listCollection(api: Api, collection: Collection): Promise<WholeList> {
  for (let start = 1; ; start++) {
    const listed = await listFrom(api, collection, start < STARTS ? [410] : []);
    if (listed) return listed;
  }
}

/** `undefined` if the list changed so much meanwhile that the API server cannot continue it. */
async function listFrom(
  api: Api,
  { path, query }: Collection,
  accepted: readonly number[],
): Promise<WholeList | undefined> {
  const items: ApiObject[] = [];
  let next: string | undefined;
  for (;;) {
    const page = {
      ...query,
      limit: String(OBJECTS_IN_ONE_RESPONSE),
      ...(next === undefined ? {} : { continue: next }),
    };
    const response = await requestOf(api, { method: "GET", path, query: page }, accepted);
    if (response.status === 410) return undefined;
    const list = parseList(response.text, path);
    items.push(...list.items);
    next = list.next;
    if (next === undefined) return { revision: list.revision, items };
  }
}

/** The present revision of a collection, without its objects. */
export async function currentRevision(api: Api, { path, query }: Collection): Promise<string> {
  const response = await requestOf(api, { method: "GET", path, query: { ...query, limit: "1" } });
  return parseList(response.text, path).revision;
}
