/** The numbers of rules that the kernel has in labels of connections, and in rules that write them. */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { readLabel } from "../../flows/rule-label.ts";
import { listLabels } from "../../linux/conntrack-entries.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { listRules } from "../../linux/nftables/read.ts";
import { POINTS } from "../../policy/point.ts";

/** 0 if there is none. Reads both whole tables: for the case that nothing else knows the numbers. */
export function highestNumberInKernel(kernel: SocketOpener): number {
  const socket = kernel.openSocket("netfilter");
  try {
    // First the rules: what they accept meanwhile is in the other list, or has no number that is not here.
    const written = listRules(socket, POLICY_TABLE).flatMap(({ expressions }) => labelsIn(expressions));
    return highestIn([...written, ...listLabels(socket)]);
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
function highestIn(labels: readonly Uint8Array[]): number {
  let highest = 0;
  for (const label of labels) {
    for (const point of POINTS) {
      const field = readLabel(label, point);
      if (field.kind === "rule") highest = Math.max(highest, field.number);
    }
  }
  return highest;
}
