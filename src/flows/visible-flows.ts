/**
 * What somebody may see of flows, by what they may list: pods of a namespace, pods of all of them, nodes. Pure.
 *
 * An end that may not be listed is `hidden`: its address stays, everything that says who has it goes, and so does the rule that
 * decided about it. What is left without an end of theirs is not shown, and not counted. Whoever filters flows for somebody
 * filters what is left (`visibleMatcher`), or a filter would tell what is hidden.
 */
import type { FlowAnswer, FlowExplanation, FlowFilter, FlowGroup, FlowRollup } from "./flow-answer.ts";
import { type FlowMatcher, matcherOf, type Sight } from "./flow-query.ts";
import type { FlowDecision, FlowEnd, FlowRecord, Point, StagedFlow } from "./flow-record.ts";

/** In place of the name of a node. */
export const HIDDEN_NODE = "hidden";

export function seesEverything({ everyPod, nodes }: Sight): boolean {
  return everyPod && nodes;
}

/** `nodes,pods/blue,pods/red`: the same text for the same sight. */
export function sightText({ everyPod, nodes, podsOf }: Sight): string {
  const pods = everyPod ? ["pods"] : [...podsOf].toSorted().map((namespace) => `pods/${namespace}`);
  return [...(nodes ? ["nodes"] : []), ...pods].join(",");
}

/** The other way round; `undefined` if it is not the text of one. */
export function readSight(text: string): Sight | undefined {
  const words = text === "" ? [] : text.split(",");
  const namespaces = words.map((word) => /^pods\/([\w.-]+)$/.exec(word)?.[1]);
  if (words.some((word, index) => word !== "nodes" && word !== "pods" && namespaces[index] === undefined))
    return undefined;
  return {
    ...{ everyPod: words.includes("pods"), nodes: words.includes("nodes") },
    podsOf: new Set(namespaces.filter((namespace) => namespace !== undefined)),
  };
}

/** Of the query, about what is shown of a record. Throws `FlowQueryError`. */
export function visibleMatcher({ query, sight }: FlowFilter): FlowMatcher {
  const matches = matcherOf(query);
  if (sight === undefined) return matches;
  return (record) => {
    const visible = visibleFlow(record, sight);
    return visible !== undefined && matches(visible);
  };
}

/** The namespaces that have to be known for `visibleAnswer()`. */
export function namespacesIn(answer: FlowAnswer): readonly string[] {
  return [...new Set(placesIn(answer).flatMap(({ namespace }) => (namespace === undefined ? [] : [namespace])))];
}

function placesIn(answer: FlowAnswer): readonly { readonly namespace?: string }[] {
  if ("flow" in answer) return endsOf(answer.flow);
  if ("rollup" in answer) return [answer.rollup.source, answer.rollup.destination];
  if ("explanation" in answer) return [...endsOf(answer.explanation.flow), ...(answer.explanation.sides ?? [])];
  return [];
}

function endsOf({ source, destination, backend }: FlowRecord): readonly FlowEnd[] {
  return backend === undefined ? [source, destination] : [source, destination, backend];
}

/** `undefined`: nothing of it may be seen. */
export function visibleFlow(flow: FlowRecord, sight: Sight): FlowRecord | undefined {
  if (seesEverything(sight)) return flow;
  const { source, destination, backend, staged, ...others } = flow;
  const shown = endsOf(flow).filter((end) => mayList(end, sight));
  if (shown.length === 0) return undefined;
  const owners = { source, destination: backend ?? destination };
  const { node, relatedTo, ...rest } = others;
  const isNodeShown = shown.some((end) => nodeOf(end) === node);
  const tried = staged && visibleStaged(staged, (point) => mayKnowRule(point, owners, sight));
  return {
    ...rest,
    ...(tried === undefined ? {} : { staged: tried }),
    node: isNodeShown ? node : HIDDEN_NODE,
    ...(relatedTo !== undefined && (isNodeShown || ID_PATTERN.test(relatedTo)) ? { relatedTo } : {}),
    source: visibleEnd(source, sight),
    destination: visibleEnd(destination, sight),
    ...(backend === undefined ? {} : { backend: visibleEnd(backend, sight) }),
    decisions: flow.decisions.map((decision) =>
      mayKnowRule(decision.point, owners, sight) ? decision : withoutRule(decision),
    ),
  };
}

/** What another end would decide is not told, nor what follows from it. */
function visibleStaged({ verdict, decisions }: StagedFlow, mayKnow: (point: Point) => boolean): StagedFlow | undefined {
  const shown = decisions.filter(({ point }) => mayKnow(point));
  const isKnown = shown.length === decisions.length || shown.some((decision) => decision.verdict === "deny");
  return isKnown ? { verdict, decisions: shown } : undefined;
}

/** An ID tells nothing; a tuple in words has addresses of other ends. */
const ID_PATTERN = /^\w+$/;

/** Where a visible end runs is not a secret; where the other one runs is. */
function nodeOf({ kind, name, node }: FlowEnd): string | undefined {
  return kind === "host" ? name : node;
}

function withoutRule({ point, verdict }: FlowDecision): FlowDecision {
  return { point, verdict };
}

/** Whether the end is one that the reader may list: that makes a flow visible. */
export function mayList(end: Pick<FlowEnd, "kind" | "namespace">, { everyPod, nodes, podsOf }: Sight): boolean {
  switch (end.kind) {
    case "pod":
    case "service":
      return everyPod || (end.namespace !== undefined && podsOf.has(end.namespace));
    case "container":
      return everyPod;
    case "host":
      return nodes;
    case "network set":
    case "outside":
    case "hidden":
      return false;
  }
}

/** A network set is nobody's end, but its name is no secret to those who may see its namespace. */
function mayName(end: Pick<FlowEnd, "kind" | "namespace">, sight: Sight): boolean {
  if (end.kind === "outside") return true;
  if (end.kind !== "network set") return mayList(end, sight);
  return sight.everyPod || (end.namespace !== undefined && sight.podsOf.has(end.namespace));
}

function visibleEnd(end: FlowEnd, sight: Sight): FlowEnd {
  if (mayName(end, sight)) return end;
  const { address, port } = end;
  return { kind: "hidden", address, ...(port === undefined ? {} : { port }) };
}

interface Owners {
  readonly source: Pick<FlowEnd, "kind" | "namespace">;
  readonly destination: Pick<FlowEnd, "kind" | "namespace">;
}

/** Rules of a point belong to whom they protect. */
function mayKnowRule(point: Point, { source, destination }: Owners, sight: Sight): boolean {
  switch (point) {
    case "host in":
    case "host out":
      return sight.nodes;
    case "workload egress":
      return mayList(source, sight);
    case "workload ingress":
      return mayList(destination, sight);
  }
}

/** As `visibleFlow`. Roll-ups with hidden ends may become equal: see `mergedRollups()`. */
export function visibleRollup(rollup: FlowRollup, sight: Sight): FlowRollup | undefined {
  if (seesEverything(sight)) return rollup;
  const { source, destination, rules } = rollup;
  if (!mayList(source, sight) && !mayList(destination, sight)) return undefined;
  return {
    ...rollup,
    // A roll-up does not say where its ends are.
    node: sight.nodes && [source, destination].every((group) => mayName(group, sight)) ? rollup.node : HIDDEN_NODE,
    source: visibleGroup(source, sight),
    destination: visibleGroup(destination, sight),
    rules: rules.filter((rule) => mayKnowRule(pointOf(rule), rollup, sight)),
  };
}

function visibleGroup(group: FlowGroup, sight: Sight): FlowGroup {
  return mayName(group, sight) ? group : { kind: "hidden" };
}

/** Of `POINT: COMMENT`. What is not a point counts as one of hosts. */
function pointOf(rule: string): Point {
  const point = rule.slice(0, rule.indexOf(":"));
  return point === "workload egress" || point === "workload ingress" ? point : "host in";
}

/** Those that say the same about the same time, as one. */
export function mergedRollups(rollups: readonly FlowRollup[]): readonly FlowRollup[] {
  const merged = new Map<string, FlowRollup>();
  for (const rollup of rollups) {
    const { flows, packets, bytes, ...key } = rollup;
    const name = JSON.stringify(key);
    const before = merged.get(name);
    const summed = before && {
      ...{ ...key, flows: before.flows + flows, packets: before.packets + packets, bytes: before.bytes + bytes },
    };
    merged.set(name, summed ?? rollup);
  }
  return [...merged.values()];
}

/** Which policies a reader may list. */
export interface PolicyRights {
  /** Of a namespace; `undefined`: global ones. The reasoning of a side names policies of both. */
  readonly of: (namespace: string | undefined) => boolean;
  readonly clusterPolicies: boolean;
}

/** As `visibleFlow`. */
export function visibleExplanation(
  { flow, sides, missing }: FlowExplanation,
  sight: Sight,
  rights: PolicyRights,
): FlowExplanation | undefined {
  const visible = visibleFlow(flow, sight);
  if (visible === undefined) return undefined;
  if (sides === undefined) return { flow: visible, missing: seesEverything(sight) ? missing : [] };
  const shown = sides.filter(({ direction, namespace, policies }) => {
    if (!rights.of(undefined) || (namespace !== undefined && !rights.of(namespace))) return false;
    if (!rights.clusterPolicies && policies.some(isClusterPolicy)) return false;
    const end = direction === "egress" ? flow.source : (flow.backend ?? flow.destination);
    return namespace === undefined ? sight.nodes : mayList({ ...end, namespace }, sight);
  });
  const isWhole = shown.length === sides.length;
  return {
    flow: visible,
    sides: visible.node === flow.node ? shown : shown.map(withoutOtherNode),
    // What is missing, and where judge and kernel disagree, names both ends.
    missing: isWhole && seesEverything(sight) ? missing : [NOT_SHOWN],
  };
}

function isClusterPolicy({ title }: { readonly title: string }): boolean {
  return title.startsWith("ClusterNetworkPolicy ");
}

/** The reason of a side that another node judges names both nodes. */
function withoutOtherNode<Side extends { readonly reason: string }>(side: Side): Side {
  return { ...side, reason: side.reason.replace(/; judged on node .*$/, "") };
}

const NOT_SHOWN =
  "only what you may list is shown: the sides of other ends, and policies that you may not list, are left out";
