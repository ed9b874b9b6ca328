/**
 * The only code that writes the NAT table. If it is up to date, that costs one
 * small read; otherwise the table is replaced in one batch, so that no packet
 * ever meets half of it. DEL does not touch the table.
 */
import { PluginError } from "../errors.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { listRuleHeads } from "../linux/nftables/read.ts";
import { loadOnce } from "../load-once.ts";
import { NAT_RULE_COUNT, NAT_TABLE, type NatPool, natComment } from "./nat-table.ts";

const loadWriter = loadOnce(() => Promise.all([import("./nat-rules.ts"), import("../linux/nftables/commit.ts")]));

/** Makes the kernel masquerade for these pools; returns whether the table was written. */
export async function applyNat(socket: NetlinkSocket, pools: readonly NatPool[]): Promise<boolean> {
  const comment = natComment(pools);
  if (isUpToDate(socket, comment)) return false;
  const [{ natChanges }, { commit }] = await loadWriter();
  try {
    commit(socket, natChanges(pools, comment));
    return true;
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    throw new PluginError("kernel-refused", `Cannot masquerade for pools with natOutgoing: ${reason}`, {
      cause: failure,
      details: "the kernel needs nf_tables with NAT (nft_masq); or set natOutgoing to false on every pool",
    });
  }
}

function isUpToDate(socket: NetlinkSocket, comment: string | undefined): boolean {
  const rules = listRuleHeads(socket, NAT_TABLE);
  if (comment === undefined) return rules.length === 0;
  return rules.length === NAT_RULE_COUNT && rules.every((rule) => rule.comment === comment);
}
