/** Whether the tables of this host are as they were written: by what their writers look at before they write them again. */
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { listRuleHeads } from "../linux/nftables/read.ts";
import { FLOATING_TABLE, isFloatingIntact } from "./floating-table.ts";
import { GUARD_TABLE, isIntact } from "./guard-table.ts";
import { isNatComment, NAT_RULE_COUNT, NAT_TABLE } from "./nat-table.ts";

/** `missing`: the table has no rules, or does not exist. */
export type TableState = "intact" | "changed" | "missing";

export function readGuardState(socket: NetlinkSocket): TableState {
  const rules = listRuleHeads(socket, GUARD_TABLE);
  return stateOf(rules, isIntact(rules));
}

export function readFloatingState(socket: NetlinkSocket): TableState {
  const rules = listRuleHeads(socket, FLOATING_TABLE);
  return stateOf(rules, isFloatingIntact(rules));
}

/** For whichever pools it was written. */
export function readNatState(socket: NetlinkSocket): TableState {
  const rules = listRuleHeads(socket, NAT_TABLE);
  const [comment = "", ...others] = new Set(rules.map((rule) => rule.comment));
  return stateOf(rules, rules.length === NAT_RULE_COUNT && others.length === 0 && isNatComment(comment));
}

function stateOf(rules: readonly unknown[], isIntact: boolean): TableState {
  if (rules.length === 0) return "missing";
  return isIntact ? "intact" : "changed";
}
