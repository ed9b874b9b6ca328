/** `policy draft`: policies that allow what was recorded, as YAML on stdout; what they do not allow, and why, on stderr. */
import { counted, listed } from "../../../counted.ts";
import {
  type Draft,
  type DraftOptions,
  draftPolicies,
  FlowCollection,
  policySpecOf,
} from "../../../flows/draft/draft-policies.ts";
import type { Aggregation } from "../../../flows/draft/draft-rules.ts";
import { type DraftKind, draftText } from "../../../flows/draft/draft-text.ts";
import type { UnselectedGroup } from "../../../flows/draft/workload-groups.ts";
import { identity } from "../../../identity.ts";
import { readPolicy } from "../../../policy/read-resources.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { withFlows } from "../../flows/flow-access.ts";
import { timeText } from "../../flows/flow-rows.ts";
import { MissingNotes } from "../../flows/missing.ts";
import { flowsAskedFor } from "../../flows/query.ts";
import { reportUnreadable } from "../../ipam/report-unreadable.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess } from "../../main/context.ts";
import { USUAL_NAMESPACE } from "../../resources/options.ts";
import { printable } from "../../terminal/printable.ts";
import { DRAFT_TIME } from "../options.ts";
import { draftOneFlow } from "./draft-flow.ts";
import { knownSettings } from "./read-flow-draft.ts";

/** More different connections are not judged. */
const MOST_CONNECTIONS = 20_000;

export async function run(context: DatastoreAccess & ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  if (given.values.has("flow")) return draftOneFlow(context, given);
  const [aggregation, isWanted] = [aggregationOf(given), wantedGroups(given)];
  const kind: DraftKind = given.switches.has("enforced") ? "enforced" : "staged";
  const missing = new MissingNotes(context);
  const recorded = await readFlows(context, given, missing);
  return withDatastore(context, given, async (store) => {
    const read = await readPolicy(store, { withServices: true });
    const draft = draftPolicies(recorded.flows(), {
      ...{ resources: read.resources, settingsOf: knownSettings(read.configurations), isWanted, aggregation },
      includesDenied: given.switches.has("include-denied"),
    });
    if (wantsJson(given)) context.stdout(`${JSON.stringify(jsonOf(draft), undefined, 2)}\n`);
    else context.stdout(draftText(draft, kind));
    for (const line of summaryOf(draft, recorded, given)) context.stderr(`${printable(line)}\n`);
    missing.tellLosses();
    const isWhole = reportUnreadable(context, read.unreadable) === EXIT_OK && !missing.hasProblem;
    return isWhole && draft.policies.length > 0 ? EXIT_OK : EXIT_FAILED;
  });
}

async function readFlows(
  context: DatastoreAccess & ClusterAccess & Clock,
  given: Given,
  missing: MissingNotes,
): Promise<FlowCollection> {
  const { values } = given;
  const namespace = values.get("namespace");
  // Records do not say the namespace of a container.
  const isSelective = namespace !== undefined && namespace !== USUAL_NAMESPACE;
  const asked = new Map([
    ["since", values.get("since") ?? DRAFT_TIME],
    ...[...values].filter(([name]) => name === "until" || (name === "namespace" && isSelective)),
  ]);
  const recorded = new FlowCollection(MOST_CONNECTIONS);
  const parameters = flowsAskedFor({ ...given, values: asked }, context.now());
  await withFlows(context, given, async (ask) => {
    for await (const answer of ask("flows", parameters))
      if (!missing.take(answer) && "flow" in answer) recorded.add(answer.flow);
  });
  context.signal.throwIfAborted();
  return recorded;
}

/** Owners, pods and containers that the options name; without a namespace the containers of hosts without an orchestrator. */
function wantedGroups({ values }: Given): DraftOptions["isWanted"] {
  const [namespace, pod, owner] = [values.get("namespace"), values.get("pod"), values.get("owner")];
  const labels = values.get("label")?.split(",").map(labelIn) ?? [];
  return ({ namespace: own, members }: UnselectedGroup) =>
    (namespace === undefined ? members.some(({ kind }) => kind === "container") : own === namespace) &&
    (pod === undefined || members.some(({ name }) => isNamed(name, pod))) &&
    (owner === undefined || members.some((member) => isOwner(member.owner, owner))) &&
    members.some((member) => labels.every(({ key, value }) => hasLabel(member.allLabels, key, value)));
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function isOwner(owner: { readonly kind: string; readonly name: string } | undefined, wanted: string): boolean {
  const [first = "", second] = wanted.split("/");
  if (owner === undefined) return false;
  return second === undefined
    ? owner.name === first
    : owner.kind.toLowerCase() === first.toLowerCase() && owner.name === second;
}

function labelIn(text: string): { readonly key: string; readonly value: string | undefined } {
  const [, key, value] = /^([\w./-]+)(?:==?([\w.-]*))?$/.exec(text.trim()) ?? [];
  if (key !== undefined) return { key, value };
  throw new UsageError(`"--label" is ${quoted(text)}: must be "key=value" or "key", several with commas`);
}

function hasLabel(labels: Readonly<Record<string, string>>, key: string, value: string | undefined): boolean {
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

/** `24`, or `24,64`: of IPv4, then of IPv6. */
function aggregationOf({ values }: Given): Aggregation {
  const text = values.get("aggregate");
  if (text === undefined) return {};
  const [, ipv4, ipv6] = /^(\d{1,2})(?:,(\d{1,3}))?$/.exec(text) ?? [];
  if (ipv4 === undefined || Number(ipv4) > 32 || Number(ipv6 ?? 0) > 128)
    throw new UsageError(
      `"--aggregate" is ${quoted(text)}: must be the length of IPv4 networks, such as 24, or also of IPv6 networks: 24,64`,
    );
  return { 4: Number(ipv4), ...(ipv6 === undefined ? {} : { 6: Number(ipv6) }) };
}

function jsonOf(draft: Draft): object {
  const { policies, sets, flows, allowed, denied, unplaced, silent, unselectable, problems } = draft;
  return {
    networkSets: sets,
    policies: policies.map((policy) => ({
      ...{ name: policy.name, namespace: policy.namespace, comments: policy.comments, spec: policySpecOf(policy) },
      rules: [...policy.ingress, ...policy.egress].map(({ comments }) => comments),
    })),
    ...{ flows, allowed, denied, notAllowed: Object.fromEntries(unplaced), withoutFlows: silent },
    ...{ withoutLabels: unselectable, problems },
  };
}

function summaryOf(draft: Draft, recorded: FlowCollection, { switches, values }: Given): readonly string[] {
  const { policies, flows, allowed, denied, unplaced, silent, unselectable, problems } = draft;
  const rules = policies.reduce((sum, { ingress, egress }) => sum + ingress.length + egress.length, 0);
  const since = recorded.total === 0 ? "" : `; the oldest began ${timeText(recorded.oldest)}`;
  const label = `${identity.adminTool} label container NAME KEY=VALUE`;
  const note = (isTrue: boolean, text: string) => (isTrue ? [`Note: ${text}`] : []);
  const isWithoutNamespace = values.get("namespace") === undefined;
  const filters = ["namespace", "pod", "owner", "label"].filter((name) => values.has(name));
  return [
    `Read ${counted(recorded.total, "flow")}${since}`,
    `Drafted ${counted(policies.length, "policy", "policies")} with ${counted(rules, "rule")}: alone they allow ${allowed} of ${counted(flows, "flow")}`,
    ...note(recorded.total === 0, "no connection was recorded in that time: see --since, and what flows records"),
    ...note(
      recorded.total > 0 && flows === 0 && filters.length > 0,
      `no flow is of a workload as ${filters.map((name) => `--${name}`).join(" and ")} ${filters.length === 1 ? "says" : "say"}`,
    ),
    ...note(
      policies.length === 0 && recorded.total > 0 && isWithoutNamespace,
      "without --namespace only containers without Kubernetes get policies",
    ),
    ...note(denied > 0, `${counted(denied, "denied flow")} not allowed; allow them with --include-denied`),
    ...note(switches.has("include-denied"), "what a policy denies before the draft is evaluated stays denied"),
    ...Array.from(unplaced, ([reason, count]) => `Note: ${counted(count, "flow")} not allowed: ${reason}`),
    ...note(silent.length > 0, `no flow was recorded of ${listed(silent)}: no policy for ${they(silent)}`),
    ...note(
      unselectable.length > 0,
      `no label selects ${listed(unselectable)}: no policy for ${they(unselectable)}; label pods, or containers with "${label}", and draft again`,
    ),
    ...note(
      recorded.dropped > 0,
      `${counted(recorded.dropped, "flow")} not looked at: there are more than ${MOST_CONNECTIONS} different connections; ask for less time with --since and --until`,
    ),
    ...problems.map((problem) => `Warning: as it is written, the draft denies everything: ${problem}`),
  ];
}

function they(titles: readonly string[]): string {
  return titles.length === 1 ? "it" : "them";
}
