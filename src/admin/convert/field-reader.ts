/** Reads the fields of a v1 resource, and reports those that have the wrong type or that nothing reads. */
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";

export type Fields = Readonly<Record<string, unknown>>;

export class FieldReader {
  private readonly known = new Set<string>();

  constructor(
    private readonly fields: Fields,
    private readonly path: string,
    private readonly problems: string[],
  ) {}

  /** Any value as it is; v1 has two spellings of some fields: `!net` and `notNet`. */
  any(...names: readonly string[]): unknown {
    for (const name of names) this.known.add(name);
    const found = names.find((name) => this.fields[name] !== undefined && this.fields[name] !== null);
    return found === undefined ? undefined : this.fields[found];
  }

  text(...names: readonly string[]): string | undefined {
    const value = this.any(...names);
    if (value === undefined || typeof value === "string") return value;
    return this.refuse(names, value, "a text");
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === "") this.problems.push(`${this.at(name)}: is missing`);
    return value ?? "";
  }

  list(...names: readonly string[]): readonly unknown[] | undefined {
    const value = this.any(...names);
    if (value === undefined || Array.isArray(value)) return value;
    return this.refuse(names, value, "a list");
  }

  texts(...names: readonly string[]): readonly string[] | undefined {
    const list = this.list(...names);
    const wrong = list?.find((member) => typeof member !== "string");
    if (wrong !== undefined) return this.refuse(names, wrong, "a text");
    return list?.map(String);
  }

  object(...names: readonly string[]): FieldReader | undefined {
    const value = this.any(...names);
    if (value === undefined) return undefined;
    if (!isObject(value)) return this.refuse(names, value, "an object");
    return new FieldReader(value, this.at(names[0] ?? ""), this.problems);
  }

  /** The members of a list of objects. */
  objects(name: string): readonly FieldReader[] | undefined {
    return this.list(name)?.flatMap((member, index) => {
      if (isObject(member)) return [new FieldReader(member, `${this.at(name)}[${index}]`, this.problems)];
      this.refuse([`${name}[${index}]`], member, "an object");
      return [];
    });
  }

  refuseValue(name: string, expected: string): void {
    this.problems.push(`${this.at(name)}: is ${quoted(this.fields[name])}; ${expected}`);
  }

  /** Reports the fields that nothing has read: they would be lost. */
  end(): void {
    for (const name of Object.keys(this.fields)) {
      if (!this.known.has(name)) this.problems.push(`${this.at(name)}: is not a field of v1, and would be lost`);
    }
  }

  private refuse(names: readonly string[], value: unknown, expected: string): undefined {
    this.problems.push(`${this.at(names[0] ?? "")}: is ${quoted(value)}, and must be ${expected}`);
    return undefined;
  }

  private at(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}

/** An object without the fields that are absent. */
export function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
