/**
 * Single fields of a stored record, read by hand.
 *
 * For the way of an ADD, which needs five fields of a pool and one of a node:
 * building the schemas of whole kinds takes a new process longer than all its
 * reading. Reads as the schemas do: `null` is absence, unknown fields are
 * ignored, a value of the wrong type is refused by its place
 * (`stored.test.ts` holds them to each other).
 */
import { PluginError } from "../errors.ts";

/** Parses what the datastore holds under the key. */
export function parseStored(text: string, kind: string, key: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PluginError("record-malformed", `Cannot read ${kind} at "${key}": it is not JSON`, { cause });
  }
}

export function readStored(text: string, kind: string, key: string): StoredFields {
  return new StoredFields(parseStored(text, kind, key), { kind, key, path: "" });
}

interface Place {
  readonly kind: string;
  readonly key: string;
  /** Where in the record; empty for all of it. */
  readonly path: string;
}

export class StoredFields {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(
    value: unknown,
    private readonly place: Place,
  ) {
    if (!isRecord(value)) throw refusal(place, "an object");
    this.#fields = value;
  }

  /** An object; empty where it is absent. */
  section(name: string): StoredFields {
    return new StoredFields(this.#fields[name] ?? {}, this.#placeOf(name));
  }

  text(name: string, absent?: string): string {
    const value = this.#fields[name] ?? absent;
    if (typeof value === "string") return value;
    throw refusal(this.#placeOf(name), "a string");
  }

  flag(name: string, absent: boolean): boolean {
    const value = this.#fields[name] ?? absent;
    if (typeof value === "boolean") return value;
    throw refusal(this.#placeOf(name), "true or false");
  }

  /** `undefined` where it is absent. */
  integer(name: string): number | undefined {
    const value = this.#fields[name] ?? undefined;
    if (value === undefined || (typeof value === "number" && Number.isInteger(value))) return value;
    throw refusal(this.#placeOf(name), "a whole number");
  }

  texts(name: string): readonly string[] {
    const value = this.#fields[name] ?? [];
    if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
    throw refusal(this.#placeOf(name), "a list of strings");
  }

  /** Every field of it, each a text. */
  textMap(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.#fields).flatMap(([name, value]) => (value === null ? [] : [[name, this.text(name)]])),
    );
  }

  /** The failure that says what must stand there instead. */
  refusal(name: string, wanted: string): PluginError {
    return refusal(this.#placeOf(name), wanted);
  }

  #placeOf(name: string): Place {
    const { path } = this.place;
    return { ...this.place, path: path === "" ? name : `${path}.${name}` };
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refusal({ kind, key, path }: Place, wanted: string): PluginError {
  const where = path === "" ? "" : `${path}: `;
  return new PluginError("record-malformed", `Cannot read ${kind} at "${key}": ${where}it must be ${wanted}`);
}
