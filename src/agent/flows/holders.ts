/**
 * Who has an address, for a hundred thousand addresses: an IPv4 address is a number, and only of an address that several have
 * there is a list.
 */
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { type Prefix, prefixAround } from "../../ip/prefix.ts";
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

/** Which networks an address is in: by length, so that a lookup takes one step for each length that there is. */
export class NetworkIndex<Value> {
  private readonly families: Readonly<Record<Family, Map<number, Holders<Value>>>> = { 4: new Map(), 6: new Map() };

  add({ network, length }: Prefix, value: Value): void {
    const lengths = this.families[network.family];
    const holders = lengths.get(length) ?? new Holders<Value>();
    lengths.set(length, holders);
    holders.add(firstAddress(network, length), value);
  }

  remove({ network, length }: Prefix, value: Value): void {
    const lengths = this.families[network.family];
    const holders = lengths.get(length);
    holders?.remove(firstAddress(network, length), value);
    if (holders?.size === 0) lengths.delete(length);
  }

  /** Those with the longest network that contains the address. */
  around(address: Address): readonly Value[] {
    const lengths = this.families[address.family];
    for (const length of [...lengths.keys()].sort((left, right) => right - left)) {
      const found = lengths.get(length)?.at(firstAddress(address, length)) ?? [];
      if (found.length > 0) return found;
    }
    return [];
  }
}

function firstAddress(address: Address, length: number): string {
  return formatAddress(prefixAround(address, length).network);
}

function valuesIn<Value>(held: Held<Value> | undefined): readonly Value[] {
  if (held === undefined) return [];
  return held instanceof Several ? held.values : [held];
}

function keyOf(address: string): Key {
  return parseIpv4(address) ?? address;
}
