/** What the admin tool reads of the policy in the kernel of this host. Loaded only by the commands that need it. */
import { PluginError } from "../../errors.ts";
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { identity } from "../../identity.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import { directNetfilter } from "../../linux/netfilter-access.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { findTable, listRuleCounts } from "../../linux/nftables/read.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import { PacketTracer, type Tracer } from "../../linux/nftables/trace.ts";

export async function readPolicyCounts(): Promise<readonly RuleCount[] | undefined> {
  return asRoot("read the counters of policies", () =>
    directNetfilter.withSocket((socket) =>
      findTable(socket, POLICY_TABLE) === undefined ? undefined : listRuleCounts(socket, POLICY_TABLE),
    ),
  );
}

/** `number`: another one for each tracer that runs at the same time. */
export function openTracer(alternatives: readonly (readonly Expression[])[], number: number): Promise<Tracer> {
  const table = { family: "inet", name: `${identity.product}_trace_${number}` } as const;
  return asRoot("trace packets", async () => new PacketTracer(table, alternatives));
}

async function asRoot<Result>(action: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (isKernelError(cause, "EACCES", "EPERM"))
      throw new PluginError("kernel-refused", `Cannot ${action}: permission denied`, {
        details: "run it as root",
        cause,
      });
    if (isKernelError(cause, "EOPNOTSUPP"))
      throw new PluginError("kernel-refused", `Cannot ${action}: the kernel is too old`, {
        details: "Linux 5.12 or later is needed",
        cause,
      });
    throw cause;
  }
}
