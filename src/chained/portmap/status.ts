/** STATUS: whether the kernel would take ports from us. */
import { PluginError } from "../../errors.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";
import { withNetfilterSocket } from "./netfilter-socket.ts";
import type { Surroundings } from "./surroundings.ts";

export async function status(surroundings: Surroundings): Promise<void> {
  try {
    await withNetfilterSocket(surroundings, readGeneration);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("not-available", `Cannot map host ports: nf_tables does not answer: ${reason}`, { cause });
  }
}
