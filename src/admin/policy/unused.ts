/** `policy unused`: rules that can never match, policies and selectors that select nothing, rules without a packet for a time. */
import { counted } from "../../counted.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import type { FlowRollup } from "../../flows/flow-answer.ts";
import { HIDDEN_NODE } from "../../flows/visible-flows.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { idlePeers, idlePolicies } from "../../policy/judge/idle-selectors.ts";
import { isBeforeRouting } from "../../policy/judge/judge.ts";
import type { AnyPolicy, PolicyResources } from "../../policy/judge/resources.ts";
import { type UnmatchableReason, unmatchableRules } from "../../policy/judge/unmatchable-rules.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import { isNameOf, readRuleComment } from "../../policy/table/rule-comment.ts";
import { quoted } from "../../quote.ts";
import { withDatastore } from "../datastore/open.ts";
import { timeText } from "../flows/flow-rows.ts";
import { MissingNotes } from "../flows/missing.ts";
import { readRollups } from "../flows/top.ts";
import { reportUnreadable } from "../ipam/report-unreadable.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess, PolicyTable } from "../main/context.ts";
import { namespaceOf } from "../resources/reference.ts";
import { stdoutPage } from "../terminal/page.ts";
import { printable } from "../terminal/printable.ts";
import { formatTable } from "../terminal/table.ts";
import { UNUSED_TIME } from "./options.ts";

type UnusedContext = DatastoreAccess & ClusterAccess & Clock & PolicyTable;

interface Finding {
  /** `NAMESPACE/NAME`, or the name of a global one. */
  readonly policy: string;
  readonly direction?: Direction;
  /** As in `spec.ingress`. */
  readonly rule?: number;
  readonly finding: "can never match" | "selects nothing" | "no packet";
  readonly reason: string;
}

export async function run(context: UnusedContext, given: Given): Promise<ExitCode> {
  const wanted = given.values.get("for") ?? UNUSED_TIME;
  if (!/^\d{1,4}(d|h|m)$/.test(wanted))
    throw new UsageError(`"--for" is ${quoted(wanted)}: must be a number of days, hours or minutes, such as "7d"`);
  const namespace = namespaceOf(given);
  const isOfNamespace = (title: string) => namespace === undefined || title.startsWith(`${namespace}/`);
  const missing = new MissingNotes(context);
  const usage = await readUsage(context, given, { missing, since: wanted });
  return withDatastore(context, given, async (store) => {
    const { resources, unreadable } = await readPolicy(store);
    const findings = findingsIn(resources, usage).filter(({ policy }) => isOfNamespace(policy));
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ...coverage(usage), unused: findings }, undefined, 2)}\n`);
    else if (findings.length > 0)
      context.stdout(
        formatTable(["POLICY", "DIRECTION", "RULE", "FINDING", "WHY"], findings.map(rowOf), stdoutPage(context)),
      );
    else {
      const looked = policiesIn(resources).map(titleOf).filter(isOfNamespace).length;
      const where = namespace === undefined ? "" : ` of namespace ${quoted(namespace)}`;
      context.stderr(`Nothing unused was found in ${counted(looked, "policy", "policies")}${where}.\n`);
    }
    context.stderr(`${coverageWords(usage)}\n`);
    missing.tellLosses();
    const isWhole = reportUnreadable(context, unreadable) === EXIT_OK && !missing.hasProblem;
    return isWhole ? EXIT_OK : EXIT_FAILED;
  });
}

/** What is known of the packets that rules have decided about. */
interface Usage {
  /** Milliseconds since 1970, asked for. */
  readonly since: number;
  /** By flows: from when on every node that answered has records. Absent: nothing is known. */
  readonly flowsFrom?: number;
  /** That have answered. */
  readonly nodes: number;
  readonly flowRules: readonly RuleUse[];
  /** Of the kernel of this node; absent if it has no policy table, or cannot be read. */
  readonly counters?: readonly RuleUse[];
}

interface RuleUse {
  readonly policy: string;
  readonly direction: Direction;
  readonly rule: number;
  readonly packets: number;
}

async function readUsage(
  context: UnusedContext,
  given: Given,
  { missing, since }: { readonly missing: MissingNotes; readonly since: string },
): Promise<Usage> {
  const access = [...given.values].filter(([name]) => name === "kubeconfig" || name === "context");
  const asked = { ...given, values: new Map([["since", since], ...access]) };
  const rollups = await orNote(context, "flows", () => readRollups(context, asked, missing));
  const counts = await orNote(context, "counters of this node", () => context.readPolicyCounts());
  const isWhole = rollups !== undefined && !missing.hasProblem && !rollups.some(isHidden);
  const flowsFrom = isWhole ? coveredFrom(rollups) : undefined;
  return {
    since: context.now().getTime() - millisecondsIn(since),
    ...(flowsFrom === undefined ? {} : { flowsFrom }),
    nodes: new Set(rollups?.map(({ node }) => node)).size,
    flowRules: (rollups ?? []).flatMap(({ rules, packets, flows }) =>
      rules.flatMap((rule) => useOf(rule.replace(/^[^:]*: /, ""), Math.max(packets, flows))),
    ),
    ...(counts === undefined
      ? {}
      : { counters: counts.counts.flatMap(({ comment = "", packets }) => useOf(comment, packets)) }),
  };
}

async function orNote<Value>(
  { stderr }: UnusedContext,
  what: string,
  read: () => Promise<Value | undefined>,
): Promise<Value | undefined> {
  try {
    return await read();
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    stderr(`Note: the ${what} are not known: ${printable(describeFailure(failure))}\n`);
    return undefined;
  }
}

/** Then rules are left out that decided about it. */
function isHidden({ node, source, destination }: FlowRollup): boolean {
  return node === HIDDEN_NODE || source.kind === "hidden" || destination.kind === "hidden";
}

const MILLISECONDS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000 };

function millisecondsIn(text: string): number {
  return Number(text.slice(0, -1)) * (MILLISECONDS[text.slice(-1)] ?? 0);
}

/** The first record of a node is the earliest time of which it is known that it was recorded; of several nodes the latest. */
function coveredFrom(rollups: readonly FlowRollup[]): number | undefined {
  const first = Array.from(Map.groupBy(rollups, ({ node }) => node).values(), (own) =>
    own.reduce((earliest, { from }) => Math.min(earliest, from), Number.POSITIVE_INFINITY),
  );
  return first.length === 0 ? undefined : Math.max(...first);
}

function useOf(comment: string, packets: number): readonly RuleUse[] {
  const origin = readRuleComment(comment);
  if (origin.kind !== "policy") return [];
  const { policy, direction, rule } = origin;
  return [{ policy, direction, rule, packets }];
}

function policiesIn({ networkPolicies, globalNetworkPolicies }: PolicyResources): readonly AnyPolicy[] {
  return [...networkPolicies, ...globalNetworkPolicies];
}

function findingsIn(resources: PolicyResources, usage: Usage): readonly Finding[] {
  const policies = policiesIn(resources);
  const never = unmatchableRules(policies);
  const idle = idlePolicies(policies, resources).map(({ policy }) => policy);
  const isNever = new Set(never.map(({ policy, direction, rule }) => `${titleOf(policy)} ${direction} ${rule}`));
  const findings: readonly Finding[] = [
    ...never.map(({ policy, direction, rule, reason }): Finding => {
      return { policy: titleOf(policy), direction, rule, finding: "can never match", reason: reasonWords(reason) };
    }),
    ...idle.map((policy): Finding => {
      return { policy: titleOf(policy), finding: "selects nothing", reason: "its selector selects no endpoint now" };
    }),
    ...idlePeers(policies, resources).map(({ policy, side, selector }): Finding => {
      return {
        policy: titleOf(policy),
        finding: "selects nothing",
        reason: `${side} selector "${selector}" selects nothing now`,
      };
    }),
    ...policies
      .filter((policy) => !idle.includes(policy))
      .flatMap((policy) => withoutPackets(policy, usage))
      .filter(({ policy, direction, rule }) => !isNever.has(`${policy} ${direction} ${rule}`)),
  ];
  return findings.toSorted((left, right) => (sortKey(left) < sortKey(right) ? -1 : 1));
}

function withoutPackets(policy: AnyPolicy, usage: Usage): readonly Finding[] {
  return (["ingress", "egress"] as const).flatMap((direction) =>
    (policy.spec[direction] ?? []).flatMap(({ action }, rule): readonly Finding[] => {
      const isIt = (use: RuleUse) =>
        isNameOf(use.policy, titleOf(policy)) && use.direction === direction && use.rule === rule;
      // Flows name the rules that decide; what is not tracked is not recorded.
      const isRecorded = (action === "Allow" || action === "Deny") && !isBeforeRouting(policy);
      const reason = whyUnused(usage, isIt, isRecorded);
      return reason === undefined ? [] : [{ policy: titleOf(policy), direction, rule, finding: "no packet", reason }];
    }),
  );
}

/** `undefined`: it has had packets, or that is not known. */
function whyUnused(usage: Usage, isIt: (use: RuleUse) => boolean, isRecorded: boolean): string | undefined {
  const { since, flowsFrom, flowRules, counters } = usage;
  const own = counters?.filter(isIt) ?? [];
  const isCounted = own.some(({ packets }) => packets > 0);
  const uncounted = own.length > 0 && !isCounted ? "none counted by the kernel of this node" : undefined;
  if (isRecorded && flowsFrom !== undefined) {
    if (flowRules.some((use) => isIt(use) && use.packets > 0)) return undefined;
    // It may have counted before the first record, but within the time asked for.
    if (isCounted && flowsFrom > since) return undefined;
    return [
      `none in the flows since ${secondText(Math.max(flowsFrom, since))}`,
      ...(uncounted === undefined ? [] : [uncounted]),
    ].join("; ");
  }
  return uncounted;
}

/** In a narrow column too. */
function secondText(milliseconds: number): string {
  return timeText(milliseconds).replace(/\.\d+Z$/, "Z");
}

function coverage({ since, flowsFrom, counters }: Usage): object {
  return {
    asked: timeText(since),
    ...(flowsFrom === undefined ? {} : { flowsFrom: timeText(Math.max(since, flowsFrom)) }),
    counters: counters !== undefined,
  };
}

function coverageWords({ since, flowsFrom, nodes, counters }: Usage): string {
  const kernel =
    counters === undefined
      ? "the kernel of this node was not asked"
      : `the kernel of this node was asked: ${counted(counters.length, "rule")}, counted since each is there, at most since the node started`;
  if (flowsFrom === undefined)
    return counters === undefined
      ? `Note: no flows are known, or some are hidden from you, and ${kernel}: rules without a packet are not listed`
      : `Note: no flows are known, or some are hidden from you, so other nodes are not known; ${kernel}`;
  const short = flowsFrom > since ? `, not ${secondText(since)} as asked for` : "";
  return `Note: flows of ${counted(nodes, "node")} are known, as far as you may see them, since ${secondText(Math.max(flowsFrom, since))}${short}; ${kernel}`;
}

function reasonWords(reason: UnmatchableReason): string {
  switch (reason.kind) {
    case "contradiction":
      return `${reason.fields.join(" and ")} exclude each other`;
    case "direction":
      return "types does not have this direction";
    case "earlier rule":
      return `rule ${reason.rule + 1} of ${titleOf(reason.policy)} matches all that it matches`;
  }
}

function titleOf({ metadata: { namespace, name } }: AnyPolicy): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function sortKey({ policy, direction, rule = -1, reason }: Finding): string {
  return JSON.stringify([policy, direction ?? "", String(rule + 1).padStart(6, "0"), reason]);
}

function rowOf({ policy, direction, rule, finding, reason }: Finding): readonly string[] {
  return [policy, direction ?? "", rule === undefined ? "" : String(rule + 1), finding, reason].map(printable);
}
