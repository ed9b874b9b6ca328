/**
 * Who has an address, for a hundred thousand addresses: an IPv4 address is a number, and only of an address that several have
 * there is a list.
 */
import { parseIpv4 } from "../../ip/text.ts";

type Key = number | string;
/** A list is of at least two. */
type Held<Value> = Value | Several<Value>;

class Several<Value> {
  constructor(readonly values: readonly Value[]) {}
}

export class Holders<Value> {
  private readonly held = new Map<Key, Held<Value>>();

  /** How many addresses somebody has. */
  get size(): number {
    return this.held.size;
  }

  /** `address`: in canonical form. */
  at(address: string): readonly Value[] {
    return valuesIn(this.held.get(keyOf(address)));
  }

  add(address: string, value: Value): void {
    const key = keyOf(address);
    const others = valuesIn(this.held.get(key));
    this.held.set(key, others.length === 0 ? value : new Several([...others, value]));
  }

  /** Once, if it was added several times. */
  remove(address: string, value: Value): void {
    const key = keyOf(address);
    const values = valuesIn(this.held.get(key));
    const at = values.indexOf(value);
    if (at < 0) return;
    const [first, ...others] = values.toSpliced(at, 1);
    if (first === undefined) this.held.delete(key);
    else this.held.set(key, others.length === 0 ? first : new Several([first, ...others]));
  }
}

function valuesIn<Value>(held: Held<Value> | undefined): readonly Value[] {
  if (held === undefined) return [];
  return held instanceof Several ? held.values : [held];
}

function keyOf(address: string): Key {
  return parseIpv4(address) ?? address;
}
