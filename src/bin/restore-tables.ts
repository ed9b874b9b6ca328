/** Writes the tables that all pods of this host share, for the admin tool. Loaded only by the command that needs it. */
import { PluginError } from "../errors.ts";
import { applyGuard } from "../firewall/apply-guard.ts";
import { applyNat } from "../firewall/apply-nat.ts";
import { GUARD_TABLE } from "../firewall/guard-table.ts";
import { NAT_TABLE, type NatPool } from "../firewall/nat-table.ts";
import { isKernelError, KernelError } from "../linux/kernel-error.ts";
import { directNetfilter } from "../linux/netfilter-access.ts";

/** Returns the names of the tables that were written. A kernel that cannot do it is warned about unless a pool needs NAT. */
export async function restoreTables(
  pools: readonly NatPool[],
  warn: (message: string) => void,
): Promise<readonly string[]> {
  try {
    return await directNetfilter.withSocket(async (socket) => {
      const nat = (await applyNat(socket, pools)) ? [NAT_TABLE] : [];
      const guard = (await applyGuard(socket, warn)) ? [GUARD_TABLE] : [];
      return [...nat, ...guard].map(({ family, name }) => `${family} ${name}`);
    });
  } catch (cause) {
    if (isKernelError(cause, "EACCES", "EPERM")) {
      const details = "run it as root";
      throw new PluginError("kernel-refused", "Cannot write the tables: permission denied", { details, cause });
    }
    if (pools.some(({ natOutgoing }) => natOutgoing) || !(cause instanceof KernelError)) throw cause;
    warn(cause.message);
    return [];
  }
}
