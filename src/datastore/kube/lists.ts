/**
 * Lists collections, page by page of the API, and cuts the result into the pages
 * that a reader asks for.
 *
 * The API sorts by name, a datastore by key, so a page cannot be a page of the
 * API. What is left of a list is kept for the reader's next page: all pages of
 * one list have its revision, and a list of many pages is one list.
 *
 * A reader for whom an older state is enough gets it from the API server's own
 * copy, which costs etcd nothing: as the beginning of its watch if the server can
 * do that (`streamed-lists.ts`), else in pages. Pages that were read before a
 * failure are kept for the next attempt: an API server that all read at once
 * would otherwise send the same pages again and again.
 *
 * Of an object only its record is kept as soon as it is read: whole pods of a large cluster need gigabytes.
 */

import type { KubeRequest } from "../../kube/api.ts";
import type { EnoughState, Entry, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { type Api, type ApiList, type ApiObject, parseList, requestOf } from "./api.ts";
import { type Collection, isAbsence, type KindMapping, mappingsBelow, nameOf } from "./kind-mapping.ts";
import type { ListedPart, RecordsOfCollection, StreamedLists } from "./streamed-lists.ts";

const OBJECTS_IN_ONE_RESPONSE = 500;
/** A list whose continuation has expired starts again. */
const STARTS = 5;
const CONTINUATIONS = 5;
const LISTS_KEPT = 8;

export interface Listed {
  /** The lowest of its collections, and the highest; absent for a kind without any, which the API does not have. */
  readonly revision?: string;
  readonly highest?: string;
  readonly entries: readonly Entry[];
}

type Prefix = Extract<Wanted, { readonly kind: "prefix" }>;
type WholePrefix = Pick<Prefix, "prefix" | "node" | "enough">;

interface ListedRevision {
  /** Of all collections that were listed together. */
  readonly lowest: string;
  readonly revision: string;
}

/** Without a collection: there is none. */
interface ListedCollection extends RecordsOfCollection {
  readonly collection?: Collection;
}

export interface ListsMeans {
  readonly api: Api;
  readonly streamed: StreamedLists;
  readonly mappings: readonly KindMapping[];
  /** The record of an object, if it is one. */
  readonly entryOf: (mapping: KindMapping, object: ApiObject) => Entry | undefined;
}

export class Lists {
  /** What follows the last page of a list, by what was listed and its last key. */
  private readonly rest = new Map<string, Listed>();
  /** Lists that were requested before they are read, by prefix. */
  private readonly prefetched = new Map<string, Promise<Listed>>();
  /** What lists that failed have read, by kind and collection. */
  private readonly begun = new Map<string, BegunList>();
  /** Collections that were a part of a page when they were last listed: older API servers read all that has a limit from etcd. */
  private readonly small = new Set<string>();

  /** Optional collections that the API did not have when they were last listed. */
  private readonly absent = new Set<string>();
  /** Of each collection, when it was last listed. */
  private readonly listed = new Map<string, ListedRevision>();

  constructor(private readonly means: ListsMeans) {}

  prefetch(prefix: string): void {
    const listing = this.list({ prefix });
    listing.catch(() => {});
    this.prefetched.set(prefix, listing);
  }

  async read({ limit, after, ...wanted }: Prefix): Promise<Listed> {
    const kept = after === undefined ? this.takePrefetched(wanted) : this.takeRest(wanted, after);
    const { entries, ...revisions } = (await kept) ?? (await this.list(wanted));
    const following = after === undefined ? entries : entries.filter(({ key }) => compareKeys(key, after) > 0);
    // After a full page the reader asks for another one, which may be empty: it belongs to the same list.
    if (limit === undefined || following.length < limit) return { ...revisions, entries: following };
    const page = following.slice(0, limit);
    this.keepRest(wanted, page.at(-1)?.key ?? "", { ...revisions, entries: following.slice(limit) });
    return { ...revisions, entries: page };
  }

  private async list({ prefix, node, enough }: WholePrefix): Promise<Listed> {
    const { mappings, entryOf } = this.means;
    const parts = mappingsBelow(mappings, prefix).flatMap(({ mapping, prefix: below }) =>
      mapping.collections(below, node).map((collection): ListedPart => {
        return { kind: mapping.prefix, collection, entryOf: (object) => entryOf(mapping, object) };
      }),
    );
    if (parts.length === 0) return { entries: [] };
    const lists = await this.listAll(parts, enough);
    const lowest = lowestRevision(lists.map(({ revision }) => revision));
    for (const { collection, revision } of lists) {
      if (collection !== undefined) this.noteListed(collection, { lowest, revision });
    }
    const entries = lists.flatMap((list) => list.entries);
    return {
      revision: lowest,
      highest: highestRevision(lists.map(({ revision }) => revision)),
      entries: entries.filter(({ key }) => key.startsWith(prefix)).toSorted((a, b) => compareKeys(a.key, b.key)),
    };
  }

  /**
   * From where to watch a collection that was listed with others, the lowest of whose revisions is `from`. The history of
   * each begins at another revision: of one that was listed later, the server may have none since `from`.
   */
  listedAt(collection: Collection, from: string): string {
    const listed = this.listed.get(nameOf(collection));
    return listed?.lowest === from ? listed.revision : from;
  }

  /** Whether the API did not have it when it was last listed: then there is nothing to watch. */
  isAbsent(collection: Collection): boolean {
    return this.absent.has(nameOf(collection));
  }

  private noteListed(collection: Collection, { lowest, revision }: ListedRevision): void {
    const name = nameOf(collection);
    const before = this.listed.get(name);
    // Of several lists that began at the same revision, nobody may miss anything.
    const first = before?.lowest === lowest ? lowestRevision([before.revision, revision]) : revision;
    this.listed.set(name, { lowest, revision: first });
  }

  private async listAll(
    parts: readonly ListedPart[],
    enough: EnoughState | undefined,
  ): Promise<readonly ListedCollection[]> {
    const { api, mappings } = this.means;
    const list = (part: ListedPart): Promise<RecordsOfCollection> =>
      enough === undefined
        ? listInPages(api, part.collection, new BegunList(part.entryOf))
        : this.listEnough(part, enough);
    const lists = await Promise.allSettled(parts.map((part) => this.listUnlessAbsent(part, list)));
    const failed = lists.find((each) => each.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const present = lists.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value] : []));
    if (present.length > 0) return present;
    // Of nothing there is no revision: that of any other collection says when there was nothing.
    const others = mappings.flatMap(({ collections, prefix }) => collections(prefix));
    const other = others.find(({ isOptional }) => !isOptional);
    return [{ revision: other === undefined ? "0" : await currentRevision(api, other), entries: [] }];
  }

  /** `undefined`: the API does not have the collection. */
  private async listUnlessAbsent(
    part: ListedPart,
    list: (part: ListedPart) => Promise<RecordsOfCollection>,
  ): Promise<ListedCollection | undefined> {
    const { collection } = part;
    const name = nameOf(collection);
    try {
      const records = await list(part);
      this.absent.delete(name);
      return { ...records, collection };
    } catch (failure) {
      if (!isAbsence(collection, failure)) throw failure;
      this.absent.add(name);
      return undefined;
    }
  }

  private async listEnough(part: ListedPart, enough: EnoughState): Promise<RecordsOfCollection> {
    const { api, streamed } = this.means;
    const { kind, collection, entryOf } = part;
    const name = nameOf(collection);
    const place = `${kind} ${name}`;
    const begun = this.takeBegun(place, enough);
    const streamedList = begun === undefined ? await streamed.list(part, enough) : undefined;
    if (streamedList !== undefined) return streamedList;
    const pages = begun ?? new BegunList(entryOf, enough, this.small.has(name) ? "whole" : "in pages");
    // It counts as small again when it was listed.
    this.small.delete(name);
    try {
      const list = await listInPages(api, collection, pages);
      if (pages.objects < OBJECTS_IN_ONE_RESPONSE) this.small.add(name);
      return list;
    } catch (failure) {
      this.begun.set(place, pages);
      throw failure;
    }
  }

  /** Whoever takes it goes on with it, nobody else. */
  private takeBegun(place: string, enough: EnoughState): BegunList | undefined {
    const begun = this.begun.get(place);
    this.begun.delete(place);
    return begun?.continueFor(enough) ? begun : undefined;
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

function placeOf({ prefix, node, enough }: WholePrefix, last: string): string {
  return JSON.stringify([prefix, node, enough, last]);
}

/** The revision that all of them have reached; "0", from which nothing can be watched, if there are none. */
export function lowestRevision(revisions: readonly string[]): string {
  const [first = "0", ...others] = revisions;
  return others.reduce((lowest, each) => (BigInt(each) < BigInt(lowest) ? each : lowest), first);
}

export function highestRevision(revisions: readonly string[]): string {
  return revisions.reduce((highest, each) => (BigInt(each) > BigInt(highest) ? each : highest), "0");
}

/** The pages of a list that were read so far. */
class BegunList {
  entries: Entry[] = [];
  /** How many there were, also those without a record. */
  objects = 0;
  /** That of the first page; `undefined` before. */
  revision: string | undefined;
  /** The token of the next page; `undefined` before the first and after the last one. */
  next: string | undefined;

  /** What its reader knows, if the present state is read instead: a restored store may have a lower revision. */
  private replaces: string | undefined;
  /** How often it was continued without reading another page. */
  private continued = 0;

  /** `enough`: of its reader; absent: the present state. */
  constructor(
    private readonly entryOf: (object: ApiObject) => Entry | undefined,
    private enough?: EnoughState,
    private readonly size: "whole" | "in pages" = "in pages",
  ) {}

  get isWhole(): boolean {
    return this.revision !== undefined && this.next === undefined;
  }

  /** What the next page is asked for with. */
  get query(): Readonly<Record<string, string>> {
    const { notOlderThan } = this.enough ?? {};
    const limit = { limit: String(OBJECTS_IN_ONE_RESPONSE) };
    if (this.next !== undefined) return { ...limit, continue: this.next };
    if (notOlderThan === undefined) return limit;
    const state = { resourceVersion: notOlderThan, resourceVersionMatch: "NotOlderThan" };
    return this.size === "whole" ? state : { ...limit, ...state };
  }

  /** Whether a reader of such a state may go on with it. A token that fails again and again is of no use. */
  continueFor({ notOlderThan = "0" }: EnoughState): boolean {
    this.continued += 1;
    if (this.revision === undefined || this.continued >= CONTINUATIONS) return false;
    return BigInt(highestRevision([this.revision, this.replaces ?? "0"])) >= BigInt(notOlderThan);
  }

  add({ items, revision, next }: ApiList): void {
    for (const object of items) {
      const entry = this.entryOf(object);
      if (entry !== undefined) this.entries.push(entry);
    }
    this.objects += items.length;
    this.revision ??= revision;
    this.next = next;
    this.continued = 0;
  }

  startOver(): void {
    this.entries = [];
    this.objects = 0;
    this.revision = undefined;
    this.next = undefined;
  }

  /** The server's copy has not reached what the reader knows, or the store was restored from an older one: read it itself. */
  requirePresent(): void {
    this.replaces ??= this.enough?.notOlderThan;
    this.enough = undefined;
  }
}

const GONE = 410;
/** "Too large resource version". */
const NOT_REACHED = 504;

async function listInPages(api: Api, collection: Collection, begun: BegunList): Promise<RecordsOfCollection> {
  for (let start = 1; ; ) {
    if (begun.isWhole) return { revision: begun.revision ?? "0", entries: begun.entries };
    const { path, query } = collection;
    const request: KubeRequest = { method: "GET", path, query: { ...query, ...begun.query } };
    const isCached = "resourceVersion" in begun.query;
    const accepted = [...(start < STARTS ? [GONE] : []), ...(isCached ? [NOT_REACHED] : [])];
    const response = await requestOf(api, request, accepted);
    if (response.status === GONE) {
      // The list changed so much meanwhile that the API server cannot continue it.
      begun.startOver();
      begun.requirePresent();
      start += 1;
    } else if (isCached && response.status === NOT_REACHED) begun.requirePresent();
    else begun.add(parseList(response.text, collection.path));
  }
}

/** The present revision of a collection, without its objects. */
export async function currentRevision(api: Api, { path, query }: Collection): Promise<string> {
  const response = await requestOf(api, { method: "GET", path, query: { ...query, limit: "1" } });
  return parseList(response.text, path).revision;
}
