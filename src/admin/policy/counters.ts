import { identity } from "../../identity.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import { originWords, readRuleComment } from "../../policy/table/rule-comment.ts";
import { quoted } from "../../quote.ts";
import { type Command, EXIT_FAILED, EXIT_OK, UsageError, wantsJson } from "../command.ts";
import { type Page, stdoutPage } from "../page.ts";
import { formatTable } from "../table.ts";

export const policyCounters: Command = {
  kind: "command",
  name: "counters",
  summary: "Show how many packets each rule of the policies allowed or dropped on this node",
  description: [
    "Runs on the node, as root. Reads the counters of the rules in the kernel. Counted are the packets that a rule decides about: the first",
    "of a connection, and those that are dropped; later packets of an allowed connection pass before all rules.",
    "A counter continues when the agent writes its rule again, also after a restart of the agent. It begins at 0 when the policy is created,",
    "when the first workload that it selects starts on this node, and after a reboot. The lines about the end of a tier and about profiles",
    "begin at 0 also when the list of policies that apply to a workload changes; the metrics of the agent do not.",
  ].join("\n"),
  operands: "[POLICY]",
  options: [{ name: "dropped", summary: "Show only rules that dropped packets" }],
  examples: [
    { command: "policy counters", does: "Which rules match, and how often?" },
    { command: "policy counters shop/db", does: "The rules of one policy: NAMESPACE/NAME, or NAME of a global policy" },
    { command: "policy counters --dropped", does: "What is dropped on this node?" },
    { command: "policy counters -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const [wanted, ...more] = given.operands;
    if (more.length > 0) throw new UsageError(`Give one policy at most: got ${given.operands.map(quoted).join(", ")}`);
    const counts = await context.readPolicyCounts();
    if (counts === undefined) {
      const agent = identity.nodeAgent;
      context.stderr(
        `This host has no policy table: there is no policy, or ${agent} does not run (systemctl status ${agent})\n`,
      );
      return EXIT_FAILED;
    }
    const rows = countedRules(counts).filter(
      (row) => (wanted === undefined || row.policy === wanted) && !(given.switches.has("dropped") && !isDrop(row)),
    );
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ rules: rows }, undefined, 2)}\n`);
    else if (rows.length > 0) context.stdout(tableOf(rows, stdoutPage(context)));
    if (rows.length === 0 && wanted !== undefined && !given.switches.has("dropped")) {
      context.stderr(
        `No rule of policy ${quoted(wanted)} is in the kernel: it selects no workload of this node, or does not exist\n`,
      );
      return EXIT_FAILED;
    }
    return EXIT_OK;
  },
};

/** A rule of a policy, or another one that decides; both families together. */
interface CountedRule {
  readonly policy?: string;
  readonly direction?: string;
  /** As in `spec.ingress`. */
  readonly rule?: number;
  readonly decidedBy: string;
  readonly action: string;
  readonly packets: number;
  readonly bytes: number;
}

const ACTION: Readonly<Record<string, string | undefined>> = { accept: "Allow", drop: "Deny", goto: "Pass" };

/** In the order of the policies' names and of their rules. */
function countedRules(counts: readonly RuleCount[]): readonly CountedRule[] {
  const rules = new Map<string, CountedRule>();
  for (const { comment = "", verdict = "", packets, bytes } of counts) {
    const origin = readRuleComment(comment);
    const key = `${comment} ${verdict}`;
    const before = rules.get(key);
    rules.set(key, {
      ...(origin.kind === "policy" ? { policy: origin.policy, direction: origin.direction, rule: origin.rule } : {}),
      decidedBy: originWords(origin),
      action: ACTION[verdict] ?? "Continue",
      packets: packets + (before?.packets ?? 0),
      bytes: bytes + (before?.bytes ?? 0),
    });
  }
  return [...rules.values()].toSorted((left, right) => compareTexts(sortKey(left), sortKey(right)));
}

/** Policies first. */
function sortKey({ policy, direction = "", rule = 0, decidedBy }: CountedRule): string {
  if (policy === undefined) return `1 ${decidedBy}`;
  return `0 ${policy} ${direction} ${String(rule).padStart(6, "0")}`;
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left === right ? 0 : 1;
}

function isDrop({ action, packets }: CountedRule): boolean {
  return action === "Deny" && packets > 0;
}

function tableOf(rows: readonly CountedRule[], page: Page): string {
  return formatTable(
    ["POLICY", "DIRECTION", "RULE", "ACTION", "PACKETS", "BYTES"],
    rows.map(({ policy, direction = "", rule, decidedBy, action, packets, bytes }) => [
      policy ?? decidedBy,
      direction,
      rule === undefined ? "" : String(rule + 1),
      action,
      String(packets),
      String(bytes),
    ]),
    page,
  );
}
