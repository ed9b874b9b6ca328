/** `policy preview`: who could no longer, or newly, reach whom after a change, and which recorded connections that concerns. */
import { counted } from "../../../counted.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { changedBeforeRouting } from "../../../policy/judge/policy-effects.ts";
import type { AnyPolicy, PolicyResources } from "../../../policy/judge/resources.ts";
import type { Group, Grouping } from "../../../policy/what-if/reach-groups.ts";
import { groupsOf } from "../../../policy/what-if/reach-groups.ts";
import {
  EVERYTHING,
  groupsText,
  isAllowedNow,
  isDeniedNow,
  type ReachRow,
  reachRows,
} from "../../../policy/what-if/reach-rows.ts";
import { withDatastore } from "../../datastore/open.ts";
import { reportUnreadable } from "../../ipam/report-unreadable.ts";
import { EXIT_OK, EXIT_WOULD_DENY, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../../main/context.ts";
import { idleNotes, idlePeerNotes } from "../../resources/name-notes.ts";
import { hanging, stdoutPage } from "../../terminal/page.ts";
import { printable } from "../../terminal/printable.ts";
import { formatTable } from "../../terminal/table.ts";
import { changeWords, hasPlannedChange, type PlannedChange, readPlannedChange } from "./planned-change.ts";
import { type FlowRow, type PreviewedFlows, previewFlows, USUAL_SINCE } from "./preview-flows.ts";
import { type ComparedPolicy, readReach } from "./read-reach.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  if (!hasPlannedChange(given))
    throw new UsageError('Nothing to preview: give "-f FILE", "--without NAME" or "--staged"');
  const plannedIn = await readPlannedChange(context, given);
  return withDatastore(context, given, async (stored) => {
    return showPreview(context, given, { stored, planned: await plannedIn(stored) });
  });
}

export async function showPreview(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { stored, planned }: { readonly stored: Datastore; readonly planned: PlannedChange },
): Promise<ExitCode> {
  const compared = await readReach(context, { stored, planned: planned.store });
  const preview = previewOf(compared, planned, given.values.get("by"));
  if (preview.isSummed) context.stderr(`Note: more than ${MOST_ROWS} rows, so by namespace; --by group shows all\n`);
  const flows = await previewFlows(context, given, compared);
  const text = wantsJson(given) ? jsonOf(preview, flows) : textOf(preview, flows, { context, given });
  context.stdout(text);
  const ofFlows = typeof flows === "string" ? 0 : flows.denied.length;
  const unreadable = reportUnreadable(context, compared.after.unreadable);
  return unreadable || (preview.denied.length + ofFlows > 0 ? EXIT_WOULD_DENY : EXIT_OK);
}

interface Preview {
  readonly planned: PlannedChange;
  readonly groups: readonly Group[];
  /** Of a namespace, some. */
  readonly by: Grouping;
  /** By namespace because there are many rows. */
  readonly isSummed: boolean;
  readonly denied: readonly ReachRow[];
  readonly allowed: readonly ReachRow[];
  readonly notes: readonly string[];
}

/** More are not read, unless the user asks for them. */
const MOST_ROWS = 60;

function previewOf({ reach, before, after }: ComparedPolicy, planned: PlannedChange, asked?: string): Preview {
  const pairs = [...reach.changes()];
  const rowsBy = (by: Grouping) => {
    const groups = groupsOf(reach.classes, by, after.resources);
    const options = { groups, ...(by === "namespace" ? { united: unitedText } : {}) };
    return {
      ...{ by, groups: [...new Set([...groups.values()].flat())] },
      ...{ denied: reachRows(pairs, options, isDeniedNow), allowed: reachRows(pairs, options, isAllowedNow) },
    };
  };
  const rows = rowsBy(asked === "namespace" ? "namespace" : "group");
  const isSummed = asked === undefined && rows.denied.length + rows.allowed.length > MOST_ROWS;
  return {
    ...{ planned, isSummed, notes: notesOf(before.resources, after.resources) },
    ...(isSummed ? rowsBy("namespace") : rows),
  };
}

/** Of some of a namespace. */
function unitedText(packets: ReadonlySet<string>): string {
  if (packets.has(EVERYTHING)) return EVERYTHING;
  return packets.size > 2 ? "different packets" : [...packets].join(" or ");
}

/** What the pairs do not show. */
function notesOf(before: PolicyResources, after: PolicyResources): readonly string[] {
  const changed = changedPolicies(before, after);
  const isForwarding = changed.some((policy) => policy.kind === "GlobalNetworkPolicy" && policy.spec.applyOnForward);
  const hosts = isForwarding ? after.hostEndpoints : changedBeforeRouting(before, after);
  const names = hosts.map(({ metadata }) => metadata.name);
  const stored = new Set<AnyPolicy>([...after.networkPolicies, ...after.globalNetworkPolicies]);
  const written = changed.filter((policy) => stored.has(policy));
  const hasHttp = changed.some(({ spec }) => spec.ingress?.some(({ http }) => http !== undefined));
  return [
    ...idleNotes(written, after),
    ...idlePeerNotes(written, after),
    ...(names.length === 0
      ? []
      : [
          `what the host endpoints ${names.join(", ")} decide about forwarded packets is not compared: ask policy explain`,
        ]),
    ...(hasHttp ? ["rules with http changed: what sidecars decide about requests is not compared"] : []),
  ];
}

function changedPolicies(before: PolicyResources, after: PolicyResources): readonly AnyPolicy[] {
  const all = ({ networkPolicies, globalNetworkPolicies }: PolicyResources): readonly AnyPolicy[] => [
    ...networkPolicies,
    ...globalNetworkPolicies,
  ];
  const keyOf = ({ kind, metadata, spec }: AnyPolicy) =>
    JSON.stringify([kind, metadata.namespace, metadata.name, spec]);
  const [former, present] = [new Set(all(before).map(keyOf)), new Set(all(after).map(keyOf))];
  return [
    ...all(before).filter((policy) => !present.has(keyOf(policy))),
    ...all(after).filter((policy) => !former.has(keyOf(policy))),
  ];
}

function jsonOf({ planned, by, groups, denied, allowed, notes }: Preview, flows: PreviewedFlows | string): string {
  const row = ({ sources, destinations, packets, family }: ReachRow) => ({
    from: sources.map(({ name }) => name),
    to: destinations.map(({ name }) => name),
    packets,
    ...(family === undefined ? {} : { ipVersion: family }),
  });
  const report = {
    ...{ asIf: planned.changes, by },
    groups: groups.map(({ name }) => name),
    ...{ denied: denied.map(row), allowed: allowed.map(row), notes },
    flows: typeof flows === "string" ? { problem: flows } : flows,
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

interface Shown {
  readonly context: Call & Terminal;
  readonly given: Given;
}

function textOf(preview: Preview, flows: PreviewedFlows | string, { context, given }: Shown): string {
  const { planned, by, groups, denied, allowed, notes } = preview;
  const page = stdoutPage(context);
  const say = (title: string, text: string) => hanging(title, printable(text), page.width).map((line) => `${line}\n`);
  const reach = (title: string, rows: readonly ReachRow[]) => {
    if (rows.length === 0) return [`${title}: nothing\n`];
    const cells = rows.map(({ sources, destinations, packets, family }) => [
      ...[groupsText(sources, groups), groupsText(destinations, groups)],
      family === undefined ? packets : `IPv${family} ${packets}`,
    ]);
    const some = by === "namespace" ? " (of a namespace all or some)" : "";
    return [`${title}${some}:\n`, formatTable(["FROM", "TO", "PACKETS"], cells, page, { wrapped: ["FROM", "TO"] })];
  };
  return [
    ...say("As if:  ", changeWords(planned.changes)),
    "\n",
    ...reach("Would be denied", denied),
    "\n",
    ...reach("Would be allowed", allowed),
    "\n",
    ...flowLines(flows, given, { say, page }),
    ...notes.flatMap((note) => say("Note:   ", note)),
  ].join("");
}

function flowLines(
  flows: PreviewedFlows | string,
  { values }: Given,
  {
    say,
    page,
  }: { readonly say: (title: string, text: string) => readonly string[]; readonly page: ReturnType<typeof stdoutPage> },
): readonly string[] {
  if (typeof flows === "string") return say("Note:   ", `recorded connections are not compared: ${flows}`);
  const { compared, denied, allowed, notJudged, isCut } = flows;
  const since = values.get("since") ?? USUAL_SINCE;
  const rows = (title: string, all: readonly FlowRow[]) => {
    if (all.length === 0) return [];
    const cells = all.map(({ from, to, packets, connections, open }) => [
      from,
      to,
      packets,
      `${connections}`,
      `${open}`,
    ]);
    return [`${title}:\n`, formatTable(["FROM", "TO", "PACKETS", "CONNECTIONS", "OPEN NOW"], cells, page), "\n"];
  };
  const count = `${counted(compared, "connection")} recorded (--since ${since})`;
  const sum = (all: readonly FlowRow[]) => all.reduce((total, { connections }) => total + connections, 0);
  const open = denied.reduce((total, row) => total + row.open, 0);
  const others = [
    ...(notJudged === 0 ? [] : [`${notJudged} could not be judged`]),
    ...(isCut ? ["more were not looked at: give a shorter --since"] : []),
  ];
  const outcome = `${sum(denied)} would be denied (${open} open now), ${sum(allowed)} newly allowed`;
  return [
    ...say("Flows:  ", [`${count}: ${outcome}`, ...others].join("; ")),
    "\n",
    ...rows("Recorded connections that would be denied", denied),
    ...rows("Recorded connections that would be allowed", allowed),
  ];
}
