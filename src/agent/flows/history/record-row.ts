/** A record as a row of the history: what all records have in columns, what they share in dictionaries. */
import type { Database } from "bun:sqlite";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import type { SeenFlow } from "../flow-sink.ts";
import { Dictionary } from "./dictionary.ts";

/**
 * `seq`: from 1, the number of the change: a record that changes gets the next one. `born`: its first one. `put`: milliseconds
 * since 1970, not less than `end`, and never less than in the row before.
 */
export const RECORD_SCHEMA = `
  CREATE TABLE record (
    seq INTEGER PRIMARY KEY, born INTEGER NOT NULL, put INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL, verdict INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, protocol INTEGER NOT NULL,
    source_name INTEGER NOT NULL, source TEXT NOT NULL, source_port INTEGER,
    destination_name INTEGER NOT NULL, destination TEXT NOT NULL, destination_port INTEGER,
    backend_name INTEGER, backend TEXT, backend_port INTEGER,
    judgement INTEGER NOT NULL, sent_packets INTEGER, sent_bytes INTEGER, received_packets INTEGER, received_bytes INTEGER,
    source_content INTEGER, destination_content INTEGER, rest TEXT
  );
  CREATE INDEX record_open ON record (seq) WHERE state = 0;
  CREATE INDEX record_not_allowed ON record (seq) WHERE verdict <> 0;`;

export const STATES = ["open", "ended", "denied"] as const;
export const VERDICTS = ["allowed", "denied", "unknown"] as const;

type Cell = string | number | null;

const COLUMNS = [
  ...["seq", "born", "put", "id", "state", "verdict", "start", "end", "protocol"],
  ...["source_name", "source", "source_port", "destination_name", "destination", "destination_port"],
  ...["backend_name", "backend", "backend_port", "judgement"],
  ...["sent_packets", "sent_bytes", "received_packets", "received_bytes"],
  ...["source_content", "destination_content", "rest"],
] as const;

export interface RecordRow {
  readonly seq: number;
  readonly born: number;
  readonly put: number;
  readonly id: string;
  readonly state: number;
  readonly verdict: number;
  readonly start: number;
  readonly end: number;
  readonly protocol: number;
  readonly source_name: number;
  readonly source: string;
  readonly source_port: number | null;
  readonly destination_name: number;
  readonly destination: string;
  readonly destination_port: number | null;
  readonly backend_name: number | null;
  readonly backend: string | null;
  readonly backend_port: number | null;
  readonly judgement: number;
  readonly sent_packets: number;
  readonly sent_bytes: number;
  readonly received_packets: number;
  readonly received_bytes: number;
  readonly source_content: number | null;
  readonly destination_content: number | null;
  readonly rest: string | null;
}

const FORMER_COLUMNS =
  "born, state, start, sent_packets, sent_bytes, received_packets, received_bytes, source_content, destination_content";

/** Its first number, its state and its counters: what is known of a record when it changes. */
export type FormerRow = Pick<
  RecordRow,
  | "born"
  | "state"
  | "start"
  | "sent_packets"
  | "sent_bytes"
  | "received_packets"
  | "received_bytes"
  | "source_content"
  | "destination_content"
>;

/** The same in very many records. */
export type Judgement = Pick<FlowRecord, "node" | "family" | "direction" | "decisions" | "staged">;

export interface Dictionaries {
  readonly names: Dictionary;
  /** `Judgement` as JSON. */
  readonly judgements: Dictionary;
  readonly contents: Dictionary;
}

export function openDictionaries(database: Database): Dictionaries {
  return {
    names: new Dictionary(database, "name"),
    judgements: new Dictionary(database, "judgement"),
    contents: new Dictionary(database, "content"),
  };
}

export function forgetAll({ names, judgements, contents }: Dictionaries): void {
  for (const dictionary of [names, judgements, contents]) dictionary.forget();
}

export class RecordRows {
  private readonly added;
  private readonly known;

  constructor(
    database: Database,
    private readonly dictionaries: Dictionaries,
    private readonly node: string,
  ) {
    const places = COLUMNS.map(() => "?").join(", ");
    this.added = database.prepare<undefined, Cell[]>(`INSERT OR REPLACE INTO record VALUES (${places})`);
    this.known = database.prepare<FormerRow, [string]>(`SELECT ${FORMER_COLUMNS} FROM record WHERE id = ?`);
  }

  finalize(): void {
    this.added.finalize();
    this.known.finalize();
  }

  /** The ID as it is stored: the IDs of a node begin with its name. */
  keyOf(id: string): string {
    return id.startsWith(`${this.node}-`) ? id.slice(this.node.length) : `=${id}`;
  }

  former(id: string): FormerRow | undefined {
    return this.formerByKey(this.keyOf(id));
  }

  /** `key`: the ID as it is stored. */
  formerByKey(key: string): FormerRow | undefined {
    return this.known.get(key) ?? undefined;
  }

  /** Of a flow: records of its ends in the datastore, as JSON, as far as they are known. */
  endpointsOf(id: string): readonly string[] {
    const row = this.former(id);
    return [row?.source_content, row?.destination_content].flatMap((content) =>
      content === null || content === undefined ? [] : (this.dictionaries.contents.textOf(content) ?? []),
    );
  }

  /** Replaces the row with the same ID. */
  write(seen: SeenFlow, seq: number, { put, former }: { readonly put: number; readonly former?: FormerRow }): void {
    const { id, state, verdict, start, end, protocol, source, destination, backend, sent, received, ...others } =
      seen.record;
    const { node, family, direction, decisions, staged, ...rest } = others;
    const judgement: Judgement = {
      ...{ node, family, direction, decisions },
      ...(staged === undefined ? {} : { staged }),
    };
    const { names, judgements, contents } = this.dictionaries;
    const nameOf = ({ address, port, ...name }: FlowEnd) => names.idOf(JSON.stringify(name), seq);
    const contentOf = (text: string | undefined, before: number | null | undefined) => {
      if (text !== undefined) return contents.idOf(text, seq);
      const known = before === null || before === undefined ? undefined : contents.textOf(before);
      return known === undefined ? null : contents.idOf(known, seq);
    };
    const cells: readonly Cell[] = [
      ...[
        seq,
        former?.born ?? seq,
        put,
        this.keyOf(id),
        STATES.indexOf(state),
        VERDICTS.indexOf(verdict),
        start,
        end,
        protocol,
      ],
      ...[nameOf(source), source.address, source.port ?? null],
      ...[nameOf(destination), destination.address, destination.port ?? null],
      ...(backend === undefined ? [null, null, null] : [nameOf(backend), backend.address, backend.port ?? null]),
      ...[judgements.idOf(JSON.stringify(judgement), seq), sent.packets, sent.bytes, received.packets, received.bytes],
      ...[contentOf(seen.source, former?.source_content), contentOf(seen.destination, former?.destination_content)],
      isEmpty(rest) ? null : JSON.stringify(rest),
    ];
    this.added.run(...cells);
  }

  /** `undefined` if something that it refers to is not there: the file is damaged. */
  read(row: RecordRow): FlowRecord | undefined {
    const source = this.end(row.source_name, row.source, row.source_port);
    const destination = this.end(row.destination_name, row.destination, row.destination_port);
    const judgement = this.dictionaries.judgements.textOf(row.judgement);
    if (source === undefined || destination === undefined || judgement === undefined) return undefined;
    const backend =
      row.backend_name === null ? undefined : this.end(row.backend_name, row.backend ?? "", row.backend_port);
    const shared: Judgement = JSON.parse(judgement);
    return {
      ...{
        id: row.id.startsWith("=") ? row.id.slice(1) : `${this.node}${row.id}`,
        ...shared,
        protocol: row.protocol,
        source,
        destination,
      },
      ...(backend === undefined ? {} : { backend }),
      ...{ verdict: VERDICTS[row.verdict] ?? "unknown", state: STATES[row.state] ?? "ended" },
      ...(row.rest === null ? {} : JSON.parse(row.rest)),
      ...{ start: row.start, end: row.end },
      sent: { packets: row.sent_packets, bytes: row.sent_bytes },
      received: { packets: row.received_packets, bytes: row.received_bytes },
    };
  }

  private end(name: number, address: string, port: number | null): FlowEnd | undefined {
    const text = this.dictionaries.names.textOf(name);
    if (text === undefined) return undefined;
    return { ...JSON.parse(text), address, ...(port === null ? {} : { port }) };
  }
}

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}
