/**
 * A map by network that also finds every network that an address is in. There is one table for each length of a prefix, so
 * that a look-up takes as many steps as there are different lengths, however many networks there are.
 */
import { type Address, addressBits, type Family } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";

/** Equal for equal addresses of a family. Numbers are hashed and compared faster than the bigints of IPv6. */
export type AddressKey = number | bigint;

export function addressKey({ family, value }: Address): AddressKey {
  return family === 4 ? Number(value) : value;
}

interface Networks<Value> {
  readonly length: number;
  readonly values: Map<AddressKey, Value>;
}

export class PrefixMap<Value> {
  private readonly networks: Readonly<Record<Family, Networks<Value>[]>> = { 4: [], 6: [] };

  get({ network, length }: Prefix): Value | undefined {
    return this.ofLength(network.family, length)?.values.get(networkKey(network, length));
  }

  set({ network, length }: Prefix, value: Value): void {
    let table = this.ofLength(network.family, length);
    if (table === undefined) {
      table = { length, values: new Map() };
      this.networks[network.family].push(table);
    }
    table.values.set(networkKey(network, length), value);
  }

  delete({ network, length }: Prefix): void {
    const tables = this.networks[network.family];
    const table = this.ofLength(network.family, length);
    if (table === undefined) return;
    table.values.delete(networkKey(network, length));
    if (table.values.size === 0) tables.splice(tables.indexOf(table), 1);
  }

  /** Appends the values of all networks that contain the address. */
  collect(address: Address, found: Value[]): void {
    for (const { length, values } of this.networks[address.family]) {
      const value = values.get(networkKey(address, length));
      if (value !== undefined) found.push(value);
    }
  }

  changeValues(change: (value: Value) => Value | undefined): void {
    for (const family of [4, 6] as const) {
      for (const { values } of this.networks[family]) changeValues(values, change);
    }
  }

  private ofLength(family: Family, length: number): Networks<Value> | undefined {
    return this.networks[family].find((table) => table.length === length);
  }
}

function networkKey({ family, value }: Address, length: number): AddressKey {
  const hostBits = addressBits(family) - length;
  return family === 4 ? Math.floor(Number(value) / 2 ** hostBits) : value >> BigInt(hostBits);
}

/** Replaces every value by what `change` returns for it; `undefined` deletes the entry. */
export function changeValues<Key, Value>(map: Map<Key, Value>, change: (value: Value) => Value | undefined): void {
  for (const [key, value] of map) {
    const changed = change(value);
    if (changed === undefined) map.delete(key);
    else if (changed !== value) map.set(key, changed);
  }
}
