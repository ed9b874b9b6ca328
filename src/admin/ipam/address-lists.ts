/** The IPAddressLists for reports on addresses. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import { type Address, isSameAddress } from "../../ip/address.ts";
import { decodeAddressList } from "../../ipam/records.ts";
import { lacksPermission } from "../../kube/require-ok.ts";
import { ADDRESS_LIST } from "../../model/kinds.ts";

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

/** The names of those that have the address. */
export function listsWith(lists: readonly NamedList[], address: Address): readonly string[] {
  const having = lists.filter(({ addresses }) => addresses.some((each) => isSameAddress(each, address)));
  return having.map(({ name }) => name);
}
