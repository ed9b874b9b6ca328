/** `ipam show --addresses`: every address in use or kept, with its place and its owner. */

import type { Datastore } from "../../../datastore/datastore.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { formatPrefix, prefixContains } from "../../../ip/prefix.ts";
import { tunnelTitle } from "../../../model/tunnel-address.ts";
import { type ExitCode, type Given, wantsJson } from "../../main/command.ts";
import type { ClusterAccess } from "../../main/context.ts";
import { stdoutPage } from "../../terminal/page.ts";
import { formatTable } from "../../terminal/table.ts";
import { type Allocation, allocationsOf, findBlocks, keptOfAllocation } from "../blocks.ts";
import { type KeptState, keptState } from "../kept-state.ts";
import { findPools } from "../pools.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { describeUnreadable } from "../unreadable-records.ts";
import type { NamedPool } from "../usage.ts";

/** Absent fields are unknown, or do not apply. */
interface UsedAddress {
  readonly address: string;
  readonly pool?: string;
  readonly block: string;
  readonly node?: string;
  readonly handle?: string;
  readonly namespace?: string;
  readonly pod?: string;
  readonly container?: string;
  /** "VXLAN tunnel" */
  readonly tunnel?: string;
  readonly since?: string;
  /** It is kept for its pod or container. */
  readonly kept?: KeptState;
}

export async function showAddresses(
  store: Datastore,
  { context, given }: { readonly context: ClusterAccess; readonly given: Given },
): Promise<ExitCode> {
  const [pools, blocks] = [await findPools(store), await findBlocks(store)];
  const unreadable = [...pools.unreadable, ...blocks.unreadable];
  const addresses = blocks.readable
    .flatMap(allocationsOf)
    .toSorted((left, right) => compareAddresses(left.address, right.address))
    .map((allocation) => usedAddress(allocation, pools.readable));
  if (wantsJson(given)) {
    const reported = unreadable.length === 0 ? {} : { unreadable: unreadable.map(describeUnreadable) };
    context.stdout(`${JSON.stringify({ addresses, ...reported }, undefined, 2)}\n`);
  } else if (addresses.length > 0) context.stdout(formatTable(HEADER, addresses.map(rowOf), stdoutPage(context)));
  else if (unreadable.length === 0) context.stderr("No addresses are in use.\n");
  return reportUnreadable(context, unreadable);
}

const HEADER = ["ADDRESS", "POOL", "BLOCK", "NODE", "HANDLE", "NAMESPACE", "WORKLOAD"];

function rowOf({
  address,
  pool,
  block,
  node,
  handle,
  namespace,
  pod,
  container,
  tunnel,
  kept,
}: UsedAddress): readonly string[] {
  return [
    address,
    pool ?? "(no pool)",
    block,
    ...[kept?.state === "waiting" ? "(waiting)" : node, handle, namespace, pod ?? container ?? tunnel].map(
      (cell) => cell ?? "",
    ),
  ];
}

function usedAddress(allocation: Allocation, pools: readonly NamedPool[]): UsedAddress {
  const { address, block, handle, secondary } = allocation;
  const kept = keptOfAllocation(allocation);
  const pool = pools.find(({ cidr }) => prefixContains(cidr, address))?.name;
  const { node, namespace, pod, container, timestamp } = secondary;
  const tunnel = tunnelTitle(secondary);
  return {
    address: formatAddress(address),
    ...(pool === undefined ? {} : { pool }),
    block: formatPrefix(block),
    ...(node === undefined ? {} : { node }),
    ...(handle === undefined ? {} : { handle }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(pod === undefined ? {} : { pod }),
    ...(container === undefined ? {} : { container }),
    ...(tunnel === undefined ? {} : { tunnel }),
    ...(timestamp === undefined ? {} : { since: timestamp }),
    ...(kept === undefined ? {} : { kept: keptState(kept) }),
  };
}

/** IPv4 first, then by value. */
function compareAddresses(left: Address, right: Address): number {
  if (left.family !== right.family) return left.family - right.family;
  return left.value < right.value ? -1 : left.value > right.value ? 1 : 0;
}
