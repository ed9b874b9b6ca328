/** What the kernel of this host can do with rules that log, label or reject: rules of policies are written without what it cannot. */
import { DROP_GROUP } from "../../firewall/policy-table.ts";
import { identity } from "../../identity.ts";
import { isKernelError, type KernelError } from "../../linux/kernel-error.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { tryCommit } from "../../linux/nftables/commit.ts";
import { type Expression, ICMPX_CODE } from "../../linux/nftables/expression.ts";
import type { KernelLogging } from "../../policy/table/table-builder.ts";

/** Why the kernel refused rules with these; `undefined` if it did not. */
export interface LoggingRefusals {
  readonly report: KernelError | undefined;
  readonly limit: KernelError | undefined;
  readonly label: KernelError | undefined;
  readonly reject: KernelError | undefined;
}

export interface FoundLogging extends KernelLogging {
  /** Why rules cannot write into labels of connections, which only flows need; absent if they can. */
  readonly labelProblem?: string | undefined;
  /** Why rules cannot reject packets, which only denyAction Reject needs; absent if they can. */
  readonly rejectProblem?: string | undefined;
}

/** Tries it. `report` gets the reason for each thing that is missing. */
export function findLogging(kernel: SocketOpener, report: (message: string) => void): FoundLogging {
  const socket = kernel.openSocket("netfilter");
  try {
    return loggingFrom(
      {
        report: refusalOf(socket, { kind: "log", prefix: "", group: DROP_GROUP }),
        limit: refusalOf(socket, { kind: "limit", rate: 10n, per: "second", burst: 50 }),
        label: refusalOf(
          socket,
          { kind: "immediate", to: 0, value: NO_LABEL },
          { kind: "set-ct", key: "label", from: 0 },
        ),
        reject: refusalOf(socket, { kind: "reject", type: "icmpx", code: ICMPX_CODE.adminProhibited }),
      },
      report,
    );
  } finally {
    closeNetlinkSocket(socket);
  }
}

/** Policy without reports and limits is better than a table that the kernel refuses. */
export function loggingFrom(refusals: LoggingRefusals, tell: (message: string) => void): FoundLogging {
  const { report, limit, label, reject } = refusals;
  if (report !== undefined)
    tell(
      `Rules do not report dropped packets, so "${identity.adminTool} policy trace --dropped" ${reasonOf(report, LOG)}`,
    );
  if (limit !== undefined) tell(`Policies with the action Log ${reasonOf(limit, LIMIT)}`);
  return {
    ...{ dropGroup: report === undefined ? DROP_GROUP : undefined, hasLimit: limit === undefined },
    ...(label === undefined ? {} : { labelProblem: `Flows ${reasonOf(label, LABEL)}` }),
    ...(reject === undefined ? {} : { rejectProblem: `denyAction Reject ${reasonOf(reject, REJECT)}` }),
  };
}

const LOG = { effect: "cannot show them", modules: "nft_log or nfnetlink_log" } as const;
const LIMIT = { effect: "log without a limit", modules: "nft_limit" } as const;

const LABEL = {
  effect: "do not tell which rule accepted a connection",
  modules: "CONFIG_NF_CONNTRACK_LABELS",
} as const;
const REJECT = { effect: "is not possible", modules: "nft_reject_inet" } as const;
const NO_LABEL = new Uint8Array(16);

function reasonOf(
  error: KernelError,
  { effect, modules }: typeof LOG | typeof LIMIT | typeof LABEL | typeof REJECT,
): string {
  const { message } = error;
  return isKernelError(error, "ENOENT", "EOPNOTSUPP")
    ? `${effect}: the kernel lacks ${modules}`
    : `${effect} until ${identity.nodeAgent} is restarted: ${message}`;
}

/** One batch, so nothing is left behind. */
function refusalOf(socket: NetlinkSocket, ...expressions: readonly Expression[]): KernelError | undefined {
  const table = { family: "inet", name: `${identity.policyTable}_check` } as const;
  const [refusal] = tryCommit(socket, [
    { kind: "add-table", table },
    { kind: "add-chain", table, chain: { name: "check" } },
    { kind: "add-rule", table, rule: { chain: "check", expressions } },
    { kind: "delete-table", table },
  ]);
  return refusal?.error;
}
