/** `ipam show --show-borrowed`: addresses that a node uses from a block of another node, or of none. */

import type { Datastore } from "../../../datastore/datastore.ts";
import { formatAddress } from "../../../ip/address.ts";
import { comparePrefixes, formatPrefix } from "../../../ip/prefix.ts";
import { affineNode, NODE_ATTRIBUTE } from "../../../model/ipam-block.ts";
import { tunnelTitle } from "../../../model/tunnel-address.ts";
import { type ExitCode, type Given, wantsJson } from "../../main/command.ts";
import type { ClusterAccess } from "../../main/context.ts";
import { stdoutPage } from "../../terminal/page.ts";
import { formatTable } from "../../terminal/table.ts";
import { type Allocation, allocationsOf, findBlocks } from "../blocks.ts";
import { reportUnreadable } from "../report-unreadable.ts";

export async function showBorrowed(
  store: Datastore,
  { context, given }: { readonly context: ClusterAccess; readonly given: Given },
): Promise<ExitCode> {
  const { readable, unreadable } = await findBlocks(store);
  const borrowed = readable
    .toSorted((left, right) => comparePrefixes(left.cidr, right.cidr))
    .flatMap((block) => {
      const owner = affineNode(block);
      return allocationsOf(block)
        .filter(({ secondary }) => secondary[NODE_ATTRIBUTE] !== undefined && secondary[NODE_ATTRIBUTE] !== owner)
        .map((allocation) => borrowedAddress(allocation, owner));
    });
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ borrowed }, undefined, 2)}\n`);
  else if (borrowed.length > 0) {
    const rows = borrowed.map((each) => [
      each.address,
      each.borrowingNode,
      each.block,
      each.blockOwner ?? "(no node)",
      each.type,
      each.allocatedTo,
    ]);
    context.stdout(
      formatTable(["IP", "BORROWING NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED TO"], rows, stdoutPage(context)),
    );
  } else if (unreadable.length === 0) context.stderr("No addresses are borrowed.\n");
  return reportUnreadable(context, unreadable);
}

function borrowedAddress({ address, block, handle, secondary }: Allocation, owner: string | undefined) {
  const { pod, namespace, container } = secondary;
  const tunnel = tunnelTitle(secondary);
  const workload = pod === undefined ? (container ?? handle ?? "") : `${namespace ?? "?"}/${pod}`;
  return {
    address: formatAddress(address),
    borrowingNode: secondary[NODE_ATTRIBUTE] ?? "",
    block: formatPrefix(block),
    ...(owner === undefined ? {} : { blockOwner: owner }),
    type: tunnel ?? (pod === undefined ? "container" : "pod"),
    allocatedTo: tunnel === undefined ? workload : `node ${secondary[NODE_ATTRIBUTE] ?? "?"}`,
  };
}
