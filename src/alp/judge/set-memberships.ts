/**
 * In which sets is this address, this port of an address, this identity?
 *
 * The sets are stored the other way round, by their members: a request looks up its addresses and its identity once, and
 * each rule then looks for its sets among the few that were found. An address in three sets takes one entry, not three.
 * Most members are in one set only: these share one object, so that a member takes no more than its entry.
 */
import type { Address } from "../../ip/address.ts";
import { type AddressKey, addressKey, changeValues, PrefixMap } from "./prefix-map.ts";
import type { SetMember } from "./set-member.ts";

export type SetNames = ReadonlySet<string>;

export const NO_SETS: SetNames = new Set();

export class SetMemberships {
  private readonly addresses = new Map<AddressKey, Set<string>>();
  private readonly networks = new PrefixMap<Set<string>>();
  private readonly ports = new Map<AddressKey, Set<string>>();
  private readonly identities = new Map<string, Set<string>>();
  /** For all members of a set that are in no other one: never changed. Larger ones belong to one member. */
  private readonly singles = new Map<string, Set<string>>();

  /** The sets with the address, with a network that it is in, or with the address and the port. */
  ofAddress(address: Address, port: number | undefined): readonly SetNames[] {
    const found: Set<string>[] = [];
    const ofAddress = this.addresses.get(addressKey(address));
    if (ofAddress !== undefined) found.push(ofAddress);
    const ofPort = port === undefined || this.ports.size === 0 ? undefined : this.ports.get(portKey(address, port));
    if (ofPort !== undefined) found.push(ofPort);
    this.networks.collect(address, found);
    return found;
  }

  ofIdentity(identity: string): SetNames {
    return this.identities.get(identity) ?? NO_SETS;
  }

  add(set: string, member: SetMember): void {
    this.change(member, (table, key) => {
      const names = table.get(key);
      if (names === undefined) table.set(key, this.single(set));
      else if (names.size > 1) names.add(set);
      else if (!names.has(set)) table.set(key, new Set([...names, set]));
    });
  }

  remove(set: string, member: SetMember): void {
    this.change(member, (table, key) => {
      const names = table.get(key);
      if (names === undefined) return;
      const rest = this.without(names, (name) => name === set);
      if (rest === undefined) table.delete(key);
      else if (rest !== names) table.set(key, rest);
    });
  }

  /** Removes all members of these sets. Visits every member of every set: once for an update, and few updates need it. */
  removeSets(sets: ReadonlySet<string>): void {
    if (sets.size === 0) return;
    const rest = (names: Set<string>) => this.without(names, (name) => sets.has(name));
    changeValues(this.addresses, rest);
    changeValues(this.ports, rest);
    changeValues(this.identities, rest);
    this.networks.changeValues(rest);
    for (const set of sets) this.singles.delete(set);
  }

  private single(set: string): Set<string> {
    let names = this.singles.get(set);
    if (names === undefined) {
      names = new Set([set]);
      this.singles.set(set, names);
    }
    return names;
  }

  /** `undefined` if none is left. */
  private without(names: Set<string>, isRemoved: (name: string) => boolean): Set<string> | undefined {
    const left: string[] = [];
    for (const name of names) if (!isRemoved(name)) left.push(name);
    if (left.length === names.size) return names;
    const [first] = left;
    if (first === undefined) return undefined;
    return left.length === 1 ? this.single(first) : new Set(left);
  }

  private change(member: SetMember, change: <Key>(table: Table<Key>, key: Key) => void): void {
    switch (member.kind) {
      case "address":
        change(this.addresses, addressKey(member.address));
        break;
      case "network":
        change(this.networks, member.prefix);
        break;
      case "port":
        change(this.ports, portKey(member.address, member.port));
        break;
      case "identity":
        change(this.identities, member.identity);
    }
  }
}

const PORTS = 65_536;

/** One key for an address and a port: 48 bits of IPv4 are still an exact number. */
function portKey({ family, value }: Address, port: number): AddressKey {
  return family === 4 ? Number(value) * PORTS + port : value * BigInt(PORTS) + BigInt(port);
}

interface Table<Key> {
  get(key: Key): Set<string> | undefined;
  set(key: Key, names: Set<string>): unknown;
  delete(key: Key): unknown;
}
