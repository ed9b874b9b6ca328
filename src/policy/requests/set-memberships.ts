/**
 * In which sets is this address, this port of an address, this identity?
 *
 * The sets are stored the other way round, by their members: a request looks up its addresses and its identity once, and
 * each rule then looks for its sets among the few that were found. An address in three sets takes one entry, not three.
 */
import type { Address } from "../../ip/address.ts";
import { type AddressKey, addressKey, deleteWhere, PrefixMap } from "./prefix-map.ts";
import type { SetMember } from "./set-member.ts";

export type SetNames = ReadonlySet<string>;

export const NO_SETS: SetNames = new Set();

export class SetMemberships {
  private readonly addresses = new Map<AddressKey, Set<string>>();
  private readonly networks = new PrefixMap<Set<string>>();
  private readonly ports = new Map<AddressKey, Set<string>>();
  private readonly identities = new Map<string, Set<string>>();

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
      if (names === undefined) table.set(key, new Set([set]));
      else names.add(set);
    });
  }

  remove(set: string, member: SetMember): void {
    this.change(member, (table, key) => {
      const names = table.get(key);
      if (names?.delete(set) && names.size === 0) table.delete(key);
    });
  }

  /** Removes all members of these sets. Visits every member of every set: once for an update, and few updates need it. */
  removeSets(sets: ReadonlySet<string>): void {
    if (sets.size === 0) return;
    const isLast = (names: Set<string>) => {
      for (const name of names) if (sets.has(name)) names.delete(name);
      return names.size === 0;
    };
    deleteWhere(this.addresses, isLast);
    deleteWhere(this.ports, isLast);
    deleteWhere(this.identities, isLast);
    this.networks.deleteWhere(isLast);
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
