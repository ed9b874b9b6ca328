/**
 * Finds records in the history, the newest at once and a whole history in pieces: between two pieces the collector does its
 * other work.
 *
 * SQL leaves out most rows that do not match: by time, verdict, protocol, ports, and the names of the ends, each of which is
 * stored once. What is left is decided by `visibleMatcher()` alone.
 */

import type { FlowFilter } from "../../../flows/flow-answer.ts";
import { type FlowMatcher, matcherOf } from "../../../flows/flow-query.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { mayList, seesEverything, visibleMatcher } from "../../../flows/visible-flows.ts";
import { formatAddress, parseAddress } from "../../../ip/address.ts";
import { parsePrefixOrAddress } from "../../../ip/prefix.ts";
import { protocolNumber } from "../../../model/protocols.ts";
import { nextTurn } from "../../../timers.ts";
import type { Dictionary } from "./dictionary.ts";
import type { FlowStore } from "./flow-store.ts";
import { type Judgement, type RecordRow, STATES, VERDICTS } from "./record-row.ts";

/** Row numbers that one piece looks at: about 5 ms. */
const PIECE_ROWS = 10_000;
/** Of rows that an index finds. */
const INDEXED_PIECE_ROWS = 200_000;
/** Rows that are read at once, which bounds the memory. */
const MOST_AT_ONCE = 1_000;
const FIRST_AT_ONCE = 64;
const PIECE_TEXTS = 1_000;

type Cell = string | number;

interface Condition {
  readonly sql: string;
  readonly cells: readonly Cell[];
}

interface Search {
  readonly store: FlowStore;
  readonly conditions: readonly Condition[];
  readonly matches: FlowMatcher;
  /** Row numbers of one piece. */
  readonly piece: number;
  readonly signal: AbortSignal;
}

/** A row number, and the first one that the record had, which stays when it changes. */
interface Place {
  readonly seq: number;
  readonly born: number;
}

/** The oldest first. A record that changes meanwhile may come again, as it is then. */
export async function* findRecords(
  store: FlowStore,
  filter: FlowFilter,
  signal: AbortSignal,
): AsyncIterable<FlowRecord> {
  const { query } = filter;
  const search: Search = {
    ...{ store, signal, matches: visibleMatcher(filter), conditions: await conditionsOf(store, filter, signal) },
    piece: query.verdict === undefined || query.verdict === "allowed" ? PIECE_ROWS : INDEXED_PIECE_ROWS,
  };
  const newest = store.newestSeq;
  const oldest = store.oldestSeq() ?? newest + 1;
  const first = query.since === undefined ? oldest : firstPutSince(store, query.since, [oldest, newest]);
  if (query.last !== undefined) {
    yield* readPlaces(search, await newestPlaces(search, { first, newest, most: query.last }), newest);
    return;
  }
  // Open connections are there at any later time.
  if (first > oldest) yield* readRange(search, [oldest, first - 1], OPEN);
  yield* readRange(search, [first, newest]);
  // What has changed meanwhile has a new number.
  yield* readRange(search, [newest + 1, store.newestSeq], { sql: "born <= ?", cells: [newest] });
}

const OPEN: Condition = { sql: `state = ${STATES.indexOf("open")}`, cells: [] };

async function* readRange(
  search: Search,
  [from, until]: readonly [number, number],
  more?: Condition,
): AsyncIterable<FlowRecord> {
  const { store, matches, signal } = search;
  const step = more === OPEN ? INDEXED_PIECE_ROWS : search.piece;
  let seq = from;
  while (seq <= until) {
    const end = Math.min(until, seq + step - 1);
    const rows = readPiece(search, { from: seq, until: end, order: "seq", most: MOST_AT_ONCE }, more);
    for (const row of rows) {
      const record = store.rows.read(row);
      if (record !== undefined && matches(record)) yield record;
    }
    const last = rows.length < MOST_AT_ONCE ? undefined : rows.at(-1);
    seq = (last?.seq ?? end) + 1;
    await nextTurn(signal);
  }
}

/** Of so many of the newest records that match: the newest first. */
async function newestPlaces(
  search: Search,
  { first, newest, most }: { readonly first: number; readonly newest: number; readonly most: number },
): Promise<readonly Place[]> {
  const { store, matches, signal } = search;
  const places: Place[] = [];
  const collect = async (from: number, until: number, more?: Condition) => {
    const step = more === OPEN ? INDEXED_PIECE_ROWS : search.piece;
    let [seq, limit] = [until, FIRST_AT_ONCE];
    while (seq >= from && places.length < most) {
      const end = Math.max(from, seq - step + 1);
      const rows = readPiece(search, { from: end, until: seq, order: "seq DESC", most: limit }, more);
      for (const row of rows) {
        if (places.length === most) return;
        const record = store.rows.read(row);
        if (record !== undefined && matches(record)) places.push({ seq: row.seq, born: row.born });
      }
      const last = rows.length < limit ? undefined : rows.at(-1);
      seq = (last?.seq ?? end) - 1;
      limit = Math.min(MOST_AT_ONCE, 2 * limit);
      await nextTurn(signal);
    }
  };
  await collect(first, newest);
  // Open connections are there at any later time.
  await collect(1, first - 1, OPEN);
  return places;
}

interface Piece {
  readonly from: number;
  readonly until: number;
  readonly order: "seq" | "seq DESC";
  readonly most: number;
}

function readPiece({ store, conditions }: Search, { from, until, order, most }: Piece, more?: Condition) {
  const range = { sql: "seq BETWEEN ? AND ?", cells: [from, until] };
  const all = more === undefined ? [range, ...conditions] : [range, ...conditions, more];
  return select<RecordRow>(store, all, `${order} LIMIT ${most}`);
}

const PLACES_AT_ONCE = 500;

/** The oldest first; records that have changed meanwhile last, as they are now. */
async function* readPlaces(search: Search, places: readonly Place[], newest: number): AsyncIterable<FlowRecord> {
  const { store, signal } = search;
  const changed = new Set<number>();
  for (let end = places.length; end > 0; end -= PLACES_AT_ONCE) {
    const part = places.slice(Math.max(0, end - PLACES_AT_ONCE), end);
    const list = JSON.stringify(part.map(({ seq }) => seq));
    const condition = { sql: "seq IN (SELECT value FROM json_each(?))", cells: [list] };
    const rows = select<RecordRow>(store, [condition], "seq");
    const found = new Set(rows.map(({ seq }) => seq));
    for (const { seq, born } of part) if (!found.has(seq)) changed.add(born);
    for (const row of rows) {
      const record = store.rows.read(row);
      if (record !== undefined) yield record;
    }
    await nextTurn(signal);
  }
  if (changed.size === 0) return;
  const condition = { sql: "born IN (SELECT value FROM json_each(?))", cells: [JSON.stringify([...changed])] };
  yield* readRange({ ...search, conditions: [] }, [newest + 1, store.newestSeq], condition);
}

/** The first row that was written at this time or later. */
function firstPutSince(store: FlowStore, since: number, [oldest, newest]: readonly [number, number]): number {
  let [low, high] = [oldest, newest + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = store.putAt(middle);
    if (row === undefined || row.put >= since) high = middle;
    else low = Math.max(middle + 1, row.seq + 1);
  }
  return low;
}

async function conditionsOf(
  store: FlowStore,
  { query, sight }: FlowFilter,
  signal: AbortSignal,
): Promise<readonly Condition[]> {
  const { dictionaries } = store;
  const conditions: Condition[] = [];
  const add = (sql: string, ...cells: Cell[]) => conditions.push({ sql, cells });
  const { id, verdict, until, port, protocol, from, to, policy, node, staged } = query;
  if (id !== undefined) add("id = ?", store.rows.keyOf(id));
  if (verdict !== undefined)
    add(`verdict ${verdict === "allowed" ? "=" : "<>"} 0 AND verdict = ?`, VERDICTS.indexOf(verdict));
  if (until !== undefined) add("start <= ?", until);
  if (port !== undefined) add("(destination_port = ? OR backend_port = ?)", port, port);
  if (protocol !== undefined) add("protocol = ?", protocolNumber(protocol) ?? -1);
  for (const field of ["pod", "namespace", "label"] as const) {
    if (query[field] === undefined) continue;
    const matches = matcherOf({ [field]: query[field] });
    const names = await idsOf(dictionaries.names, (text) => matches(withEnd(JSON.parse(text))), signal);
    conditions.push(either(names, ENDS));
  }
  if (sight !== undefined && !seesEverything(sight))
    conditions.push(either(await idsOf(dictionaries.names, (text) => mayList(JSON.parse(text), sight), signal), ENDS));
  for (const [field, text, columns] of [
    ["from", from, ["source"]],
    ["to", to, ["destination", "backend"]],
  ] as const) {
    if (text === undefined) continue;
    const address = parseAddress(text);
    // Behind a masquerade the source has two addresses, the other one in `rest`.
    const other = field === "from" ? ["rest IS NOT NULL"] : [];
    if (address !== undefined) {
      const sql = [...columns.map((column) => `${column} = ?`), ...other].join(" OR ");
      add(`(${sql})`, ...columns.map(() => formatAddress(address)));
    } else if (parsePrefixOrAddress(text) === undefined) {
      const matches = matcherOf({ [field]: text });
      const names = await idsOf(dictionaries.names, (name) => matches(withEnd(JSON.parse(name))), signal);
      conditions.push(
        either(
          names,
          columns.map((column) => `${column}_name`),
        ),
      );
    }
  }
  if (policy !== undefined || node !== undefined || staged !== undefined) {
    const matches = matcherOf({
      ...(policy === undefined ? {} : { policy }),
      ...(node === undefined ? {} : { node }),
      ...(staged === undefined ? {} : { staged }),
    });
    const decides = (text: string) => matches({ ...withEnd({ kind: "outside" }), ...(JSON.parse(text) as Judgement) });
    conditions.push(either(await idsOf(dictionaries.judgements, decides, signal), ["judgement"]));
  }
  return conditions;
}

const ENDS = ["source_name", "destination_name", "backend_name"];

interface Ids {
  readonly ids: readonly number[];
  /** Later ones came while this was found out: `visibleMatcher()` decides. */
  readonly newest: number;
}

async function idsOf(dictionary: Dictionary, matches: (text: string) => boolean, signal: AbortSignal): Promise<Ids> {
  const ids: number[] = [];
  let newest = 0;
  for (;;) {
    const texts = dictionary.textsAfter(newest, PIECE_TEXTS);
    const last = texts.at(-1);
    if (last === undefined) return { ids, newest };
    newest = last.id;
    for (const { id, text } of texts) if (matches(text)) ids.push(id);
    await nextTurn(signal);
  }
}

function either({ ids, newest }: Ids, columns: readonly string[]): Condition {
  const list = JSON.stringify(ids);
  const tests = columns.map((column) => `${column} IN (SELECT value FROM json_each(?)) OR ${column} > ?`);
  return { sql: `(${tests.join(" OR ")})`, cells: columns.flatMap(() => [list, newest]) };
}

/** A record whose ends are all the same one. */
function withEnd(name: Omit<FlowEnd, "address">): FlowRecord {
  const end = { ...name, address: "" };
  const nothing = { packets: 0, bytes: 0 };
  return {
    ...{
      id: "",
      node: "",
      family: 4,
      protocol: 0,
      source: end,
      destination: end,
      direction: "both",
      verdict: "unknown",
    },
    ...{ decisions: [], state: "ended", start: 0, end: 0, sent: nothing, received: nothing },
  };
}

function select<Row>(store: FlowStore, conditions: readonly Condition[], order: string): readonly Row[] {
  const where = conditions.map(({ sql }) => sql).join(" AND ");
  const query = store.database.prepare<Row, Cell[]>(`SELECT * FROM record WHERE ${where} ORDER BY ${order}`);
  try {
    return query.all(...conditions.flatMap(({ cells }) => cells));
  } finally {
    query.finalize();
  }
}
