/**
 * Texts that many rows refer to, stored once each: names of ends, what decided, resources.
 *
 * A text is removed when no row refers to it any more. To know that without looking at all rows, each has a number that is at
 * least that of the last row which refers to it (`used`); rows are numbered as they come, and the oldest are removed first.
 */
import type { Database } from "bun:sqlite";

/** `rollup_key`: used by minutes, in place of rows. */
export const DICTIONARY_TABLES = ["name", "judgement", "content", "rollup_key"] as const;
type DictionaryTable = (typeof DICTIONARY_TABLES)[number];

/** No number is given twice: a row may refer to a text that was removed to make room. */
export function dictionarySchema(table: DictionaryTable): string {
  return `
    CREATE TABLE ${table} (id INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL, used INTEGER NOT NULL, value BLOB NOT NULL);
    CREATE INDEX ${table}_hash ON ${table} (hash);`;
}

/** The file cannot be read: it is damaged, or of another version. */
export class DamagedFile extends Error {}

export const NO_ROW = 0;

interface Known {
  readonly id: number;
  used: number;
}

interface Row {
  readonly id: number;
  readonly used: number;
  readonly value: string | Uint8Array<ArrayBuffer>;
}

const MOST_REMEMBERED = 4_096;
/** Longer texts are rare, and looked up each time. */
const LONGEST_REMEMBERED = 2_048;
/** Shorter ones do not become smaller. */
const SHORTEST_COMPRESSED = 400;

export class Dictionary {
  private readonly byText = new Map<string, Known>();
  private readonly byId = new Map<number, string>();
  private readonly byHash;
  private readonly byNumber;
  private readonly added;

  constructor(
    private readonly database: Database,
    private readonly table: DictionaryTable,
    /** A text that is used again and again gets a new number only once in so many rows. */
    private readonly usedAhead = 20_000,
  ) {
    this.byHash = database.prepare<Row, [bigint]>(`SELECT * FROM ${table} WHERE hash = ?`);
    this.byNumber = database.prepare<Row, [number]>(`SELECT * FROM ${table} WHERE id = ?`);
    this.added = database.prepare<undefined, [bigint, number, string | Uint8Array<ArrayBuffer>]>(
      `INSERT INTO ${table} (hash, used, value) VALUES (?, ?, ?)`,
    );
  }

  /** Of all texts, as they are stored. */
  get bytes(): number {
    const sum = this.database.query<{ bytes: number | null }, []>(
      `SELECT sum(length(value)) AS bytes FROM ${this.table}`,
    );
    return sum.get()?.bytes ?? 0;
  }

  /** The number of a text that the row `user` refers to; stores it if it is new. `NO_ROW`: something else refers to it. */
  idOf(text: string, user: number): number {
    const known = this.byText.get(text) ?? this.find(text);
    if (known === undefined) return this.insert(text, user === NO_ROW ? user : user + this.usedAhead);
    if (known.used < user) {
      known.used = user + this.usedAhead;
      this.database.query(`UPDATE ${this.table} SET used = ? WHERE id = ?`).run(known.used, known.id);
    }
    return known.id;
  }

  /** `undefined` if it was removed. */
  textOf(id: number): string | undefined {
    const known = this.byId.get(id);
    if (known !== undefined) return known;
    const row = this.byNumber.get(id);
    if (row === null) return undefined;
    const text = unpack(row.value);
    if (text.length <= LONGEST_REMEMBERED) remember(this.byId, id, text);
    return text;
  }

  /** So many texts with numbers above `after`, in their order. */
  textsAfter(after: number, most: number): readonly { readonly id: number; readonly text: string }[] {
    return this.database
      .query<Row, [number, number]>(`SELECT * FROM ${this.table} WHERE id > ? ORDER BY id LIMIT ?`)
      .all(after, most)
      .map(({ id, value }) => ({ id, text: unpack(value) }));
  }

  /** `except`: a condition of SQL for texts that something else than rows refers to. */
  removeUnused(oldestRow: number, except = "FALSE"): void {
    const { changes } = this.database
      .query(`DELETE FROM ${this.table} WHERE used < ? AND NOT (${except})`)
      .run(oldestRow);
    if (changes > 0) this.forget();
  }

  finalize(): void {
    for (const statement of [this.byHash, this.byNumber, this.added]) statement.finalize();
  }

  /** What is remembered may not be in the file: after a transaction that was undone. */
  forget(): void {
    this.byText.clear();
    this.byId.clear();
  }

  private find(text: string): Known | undefined {
    const rows = this.byHash.all(hashOf(text));
    // Names are chosen by users, who could find two texts with the same hash.
    const row = rows.find(({ value }) => unpack(value) === text);
    if (row === undefined) return undefined;
    return this.remembered(text, { id: row.id, used: row.used });
  }

  private insert(text: string, used: number): number {
    const { lastInsertRowid } = this.added.run(hashOf(text), used, pack(text));
    const id = Number(lastInsertRowid);
    this.remembered(text, { id, used });
    return id;
  }

  private remembered(text: string, known: Known): Known {
    if (text.length <= LONGEST_REMEMBERED) remember(this.byText, text, known);
    return known;
  }
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  if (map.size >= MOST_REMEMBERED) map.delete(map.keys().next().value as Key);
  map.set(key, value);
}

/** 52 bits, which a number holds exactly. */
function hashOf(text: string): bigint {
  return BigInt.asUintN(52, BigInt(Bun.hash(text)));
}

function pack(text: string): string | Uint8Array<ArrayBuffer> {
  return text.length < SHORTEST_COMPRESSED ? text : new Uint8Array(Bun.zstdCompressSync(Buffer.from(text)));
}

function unpack(value: string | Uint8Array<ArrayBuffer>): string {
  if (typeof value === "string") return value;
  try {
    return Buffer.from(Bun.zstdDecompressSync(value)).toString();
  } catch (cause) {
    throw new DamagedFile("a text cannot be decompressed", { cause });
  }
}
