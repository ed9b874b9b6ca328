/** STATUS: whether ADD would take the options, and the kernel ports from us. */
import type { StatusCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";
import { decodeOptions } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

export async function status({ config }: StatusCall, surroundings: Surroundings): Promise<void> {
  decodeOptions(config);
  try {
    const netfilter = await surroundings.loadNetfilter();
    await netfilter.withSocket(readGeneration);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("not-available", `Cannot map host ports: nf_tables does not answer: ${reason}`, { cause });
  }
}
