/** The numbers of rules that the kernel has in labels of connections, and in rules that write them. */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { readLabel } from "../../flows/rule-label.ts";
import { readLabels } from "../../linux/conntrack-entries.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { listRules } from "../../linux/nftables/read.ts";
import { POINTS } from "../../policy/point.ts";

/**
 * 0 if there is none. Reads both whole tables, for the case that nothing else knows the numbers: in steps, since that takes
 * seconds on a host with a million connections.
 */
export function* highestNumberInKernel(kernel: SocketOpener): Generator<undefined, number> {
  const socket = kernel.openSocket("netfilter");
  try {
    let highest = 0;
    const take = (label: Uint8Array) => {
      highest = Math.max(highest, highestIn(label));
    };
    // First the rules: what they accept meanwhile is in the other list, or has no number that is not here.
    for (const { expressions } of listRules(socket, POLICY_TABLE)) labelsIn(expressions).forEach(take);
    yield* readLabels(socket, take);
    return highest;
  } finally {
    closeNetlinkSocket(socket);
  }
}

function labelsIn(expressions: readonly Expression[]): readonly Uint8Array[] {
  return expressions.flatMap((expression, index) => {
    const before = expressions[index - 1];
    const isLabel = expression.kind === "set-ct" && expression.key === "label" && before?.kind === "immediate";
    return isLabel ? [before.value] : [];
  });
}

/** What several rules wrote stays a mix, and is not taken for the label of another one. */
function highestIn(label: Uint8Array): number {
  const fields = POINTS.map((point) => readLabel(label, point));
  return Math.max(...fields.map((field) => (field.kind === "rule" ? field.number : 0)));
}
