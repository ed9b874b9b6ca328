/**
 * Everything below a prefix, a page at a time, so that no response grows
 * without bound. For lists, reports and replicas, never on the path of an ADD.
 */
import type { Datastore, EnoughState, Entry, Wanted } from "./datastore.ts";

const PAGE_SIZE = 500;
const LARGEST_PAGE = 2_000;

export interface Page {
  readonly entries: readonly Entry[];
  /** The revision of this page. */
  readonly revision: string;
  /** The page shows changes up to this revision. Absent: up to its own. */
  readonly highest?: string;
}

export interface Paging {
  readonly size?: number;
  /**
   * Each page is twice as large as the one before, up to this size: etcd counts all that is left for each page, so the cost of
   * pages of one size grows with the square of the number of records. Absent: all have the same size.
   */
  readonly largest?: number;
  /**
   * The revision to read: a given one, or that of the first page for all others. A store that does not keep old values
   * reads the present state anyway (see `Datastore.read()`). Absent: each page has its own revision.
   */
  readonly at?: string | "first page";
  /** Only records of this node are needed. */
  readonly node?: string;
  /** Absent: the present state. */
  readonly enough?: EnoughState;
}

/** Yields at least one page, which may be empty. */
export async function* pagesBelow(
  store: Pick<Datastore, "read">,
  prefix: string,
  paging: Paging = {},
): AsyncGenerator<Page> {
  const { node, enough } = paging;
  let { size = PAGE_SIZE } = paging;
  let at = paging.at === "first page" ? undefined : paging.at;
  let after: string | undefined;
  for (;;) {
    const wanted: Wanted = {
      kind: "prefix",
      prefix,
      limit: size,
      ...(after === undefined ? {} : { after }),
      ...(node === undefined ? {} : { node }),
      ...(enough === undefined ? {} : { enough }),
    };
    const { answers, ...revisions } = await store.read([wanted], at);
    const entries = answers[0] ?? [];
    yield { entries, ...revisions };
    after = entries.at(-1)?.key;
    if (entries.length < size || after === undefined) return;
    if (paging.at === "first page") at ??= revisions.revision;
    size = Math.max(size, Math.min(2 * size, paging.largest ?? size));
  }
}

/** The pages may have different revisions. */
export async function readAllEntries(store: Datastore, prefix: string): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for await (const { entries } of pagesBelow(store, prefix, { largest: LARGEST_PAGE })) all.push(...entries);
  return all;
}
