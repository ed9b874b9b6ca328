/**
 * Reads single fields of a stored record without a schema.
 *
 * For the path of an ADD, which needs five fields of a pool and one of a node:
 * building the schemas of whole kinds takes a new process longer than all its
 * reading. The results are the same as with the schemas: `null` means absent,
 * unknown fields are ignored, a value of the wrong type is an error with its
 * path (`stored.test.ts` compares both).
 */
import { PluginError } from "../errors.ts";
import { NestingError, parseJson } from "../parse-json.ts";

/** Parses the text that is stored at the key. */
export function parseStored(text: string, kind: string, key: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    const state = cause instanceof NestingError ? cause.message : "it is not JSON";
    throw new PluginError("record-malformed", `Cannot read ${kind} at "${key}": ${state}`, { cause });
  }
}

export function readStored(text: string, kind: string, key: string): StoredFields {
  return new StoredFields(parseStored(text, kind, key), { kind, key, path: "" });
}

interface Place {
  readonly kind: string;
  readonly key: string;
  /** The path in the record; empty for the whole record. */
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

  /** An object; empty if it is absent. */
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

  /** `undefined` if it is absent. */
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

  /** All its fields, each a string. */
  textMap(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.#fields).flatMap(([name, value]) => (value === null ? [] : [[name, this.text(name)]])),
    );
  }

  /** The error that says what the field must be. */
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
