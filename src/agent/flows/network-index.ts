/** Which networks an address is in: by length, so that a lookup takes one step for each length that there is. */
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { type Prefix, prefixAround } from "../../ip/prefix.ts";
import { Holders } from "./holders.ts";

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
