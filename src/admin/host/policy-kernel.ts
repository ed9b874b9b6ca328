/** What the admin tool reads of the policy in the kernel of this host. Loaded only by the commands that need it. */
import { PluginError } from "../../errors.ts";
import { DROP_GROUP, DROP_LOCK_GROUP, POLICY_TABLE } from "../../firewall/policy-table.ts";
import { identity } from "../../identity.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import { type GroupListener, listenToGroup } from "../../linux/log-group.ts";
import { directNetfilter } from "../../linux/netfilter-access.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { findTable, listElements, listRuleCounts, listRules, listSets } from "../../linux/nftables/read.ts";
import { PacketTracer, type Tracer } from "../../linux/nftables/trace.ts";
import { withDecisions } from "../../policy/render/rejected.ts";
import { interfacesOfChains, type PolicyCounts } from "../policy/chain-interfaces.ts";

export async function readPolicyCounts(): Promise<PolicyCounts | undefined> {
  return asRoot("read the counters of policies", () =>
    directNetfilter.withSocket((socket) => {
      if (findTable(socket, POLICY_TABLE) === undefined) return undefined;
      const maps = listSets(socket, POLICY_TABLE).filter(({ key, data }) => key[0] === "ifname" && data === "verdict");
      return {
        counts: withDecisions(listRuleCounts(socket, POLICY_TABLE)),
        interfacesOf: interfacesOfChains(
          maps.flatMap(({ name }) => listElements(socket, POLICY_TABLE, name)),
          listRules(socket, POLICY_TABLE),
        ),
      };
    }),
  );
}

/** A chain whose rules drop packets, in every policy table. */
const DROPPING_CHAIN = "to_workload";

export async function openDropLog(): Promise<GroupListener | undefined> {
  const rules = await asRoot("follow dropped packets", () =>
    directNetfilter.withSocket((socket) =>
      findTable(socket, POLICY_TABLE) === undefined ? undefined : listRules(socket, POLICY_TABLE, DROPPING_CHAIN),
    ),
  );
  if (rules === undefined) return undefined;
  const isReported = rules.some(({ expressions }) =>
    expressions.some((each) => each.kind === "log" && each.group === DROP_GROUP),
  );
  if (!isReported)
    throw new PluginError(
      "kernel-refused",
      "Cannot follow dropped packets: the rules of this host do not report them",
      {
        details: `an earlier release of ${identity.nodeAgent} wrote them, so restart it; or the kernel lacks nfnetlink_log ("${identity.adminTool} node checksystem")`,
      },
    );
  const listener = unlessTaken(() => listenToGroup(DROP_GROUP, { lock: DROP_LOCK_GROUP }));
  return { ...listener, resume: () => unlessTaken(listener.resume) };
}

/** The caller has read the table, so it is root: the kernel refuses it only because another process has the group. */
function unlessTaken<Result>(listen: () => Result): Result {
  try {
    return listen();
  } catch (cause) {
    if (!isKernelError(cause, "EPERM", "EBUSY")) throw cause;
    throw new PluginError(
      "kernel-refused",
      `Cannot follow dropped packets: another process does (log group ${DROP_GROUP})`,
      {
        details: `another "${identity.adminTool} policy trace --dropped" runs on this host; the kernel reports to one at a time`,
        cause,
      },
    );
  }
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
