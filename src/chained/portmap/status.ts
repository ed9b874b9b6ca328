/** STATUS: whether the kernel would take ports from us. */
import { PluginError } from "../../errors.ts";
import { openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";

export function status(): void {
  try {
    readGeneration(openNetlinkSocket("netfilter"));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("not-available", `Cannot map host ports: nf_tables does not answer: ${reason}`, { cause });
  }
}
