/**
 * With `policy.type`, ADD refuses a pod as long as the node agent has not written its rules: without them all traffic
 * would pass, after a reboot for example. Loaded only if the config has it.
 */
import { PluginError } from "../errors.ts";
import { hasPolicyTable, POLICY_TABLE } from "../firewall/policy-table.ts";
import { identity } from "../identity.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";

export async function requirePolicyTable(netfilter: NetfilterAccess): Promise<void> {
  if (await hasPolicyTable(netfilter)) return;
  const { family, name } = POLICY_TABLE;
  const { nodeAgent } = identity;
  throw new PluginError("try-again-later", `Cannot enforce network policy: ${nodeAgent} has not set its rules yet`, {
    details: `"policy.type" is set, and the kernel has no table "${family} ${name}"; check that ${nodeAgent} runs and reaches the datastore`,
  });
}
