/** The IPAddressLists for reports on addresses. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import { type Address, formatAddress, isSameAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { whyNotUsable } from "../../ipam/pools.ts";
import { decodeAddressList } from "../../ipam/records.ts";
import { lacksPermission } from "../../kube/require-ok.ts";
import type { ResourceName } from "../../model/keys.ts";
import { ADDRESS_LIST } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import { findPools } from "./pools.ts";

export interface NamedList {
  readonly name: string;
  /** In their order. */
  readonly addresses: readonly Address[];
}

export async function findLists(store: Datastore): Promise<ReadEach<NamedList>> {
  return readEach(await listEntries(store), (entry) => ({
    name: entry.key.slice(ADDRESS_LIST.prefix().length),
    addresses: decodeAddressList(entry).addresses,
  }));
}

/** None if they may not be listed: the role of the plugin, which the tool has on some hosts, reads single ones only. */
async function listEntries(store: Datastore): Promise<readonly Entry[]> {
  try {
    return await readAllEntries(store, ADDRESS_LIST.prefix());
  } catch (failure) {
    if (lacksPermission(failure)) return [];
    throw failure;
  }
}

export interface SharedAddress {
  readonly address: Address;
  readonly lists: readonly string[];
}

/** Those that several lists have. */
export function sharedAddresses(lists: readonly NamedList[]): readonly SharedAddress[] {
  const named = lists.flatMap(({ name, addresses }) => addresses.map((address) => ({ name, address })));
  const groups = Map.groupBy(named, ({ address }) => formatAddress(address));
  return Array.from(groups.values()).flatMap((group): readonly SharedAddress[] => {
    const [first, second] = group;
    if (first === undefined || second === undefined) return [];
    return [{ address: first.address, lists: group.map(({ name }) => name) }];
  });
}

const SHOWN = 3;

/** Which addresses of the list no pod gets now, and for which the pods of other lists compete. */
export async function noteOfList(store: Datastore, { name }: ResourceName): Promise<string | undefined> {
  const lists = (await findLists(store)).readable;
  const own = lists.find((each) => each.name === name)?.addresses ?? [];
  const pools = (await findPools(store)).readable.filter((pool) => whyNotUsable(pool) === undefined);
  const unusable = own.filter((address) => !pools.some(({ cidr }) => prefixContains(cidr, address)));
  const shared = own.filter((address) => listsWith(lists, address).length > 1);
  const others = new Set(shared.flatMap((address) => listsWith(lists, address)).filter((each) => each !== name));
  const notes = [
    unusable.length === 0 ? [] : `in no enabled pool, so that no pod gets them: ${shown(unusable)}`,
    shared.length === 0
      ? []
      : `in ${[...others].map(quoted).join(" and ")} too, whose pods compete for them: ${shown(shared)}`,
  ].flat();
  return notes.length === 0 ? undefined : `addresses of list ${quoted(name)} are ${notes.join("; ")}`;
}

function shown(addresses: readonly Address[]): string {
  const first = addresses.slice(0, SHOWN).map(formatAddress).join(", ");
  return addresses.length > SHOWN ? `${first} and ${addresses.length - SHOWN} more` : first;
}

/** The names of those that have the address. */
export function listsWith(lists: readonly NamedList[], address: Address): readonly string[] {
  const having = lists.filter(({ addresses }) => addresses.some((each) => isSameAddress(each, address)));
  return having.map(({ name }) => name);
}
