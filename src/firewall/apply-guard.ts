/** The only writer of the guard table. An ADD that finds it in place costs one small read. */
import { KernelError } from "../linux/kernel-error.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { listRuleHeads } from "../linux/nftables/read.ts";
import { loadOnce } from "../load-once.ts";
import { GUARD_TABLE, isIntact } from "./guard-table.ts";

const loadWriter = loadOnce(() => Promise.all([import("./guard-rules.ts"), import("../linux/nftables/commit.ts")]));

/**
 * Returns whether the table was written. A kernel that cannot do it is warned about: IPv4 is guarded by the reverse path filter
 * of each link as well.
 */
export async function applyGuard(socket: NetlinkSocket, warn: (message: string) => void): Promise<boolean> {
  try {
    return await requireGuard(socket);
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    warn(`Pods can send IPv6 packets from addresses that are not their own: ${failure.message}`);
    return false;
  }
}

/** As `applyGuard`, but throws: for a pod that has no other guard. */
export async function requireGuard(socket: NetlinkSocket): Promise<boolean> {
  if (isIntact(listRuleHeads(socket, GUARD_TABLE))) return false;
  const [{ guardChanges }, { commit }] = await loadWriter();
  commit(socket, guardChanges());
  return true;
}
