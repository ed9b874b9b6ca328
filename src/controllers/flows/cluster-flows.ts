/**
 * The answer of the whole cluster to one reader:
 *
 *   question ──> every node ──> in order ──> what the reader may see ──> what the reader asked for ──> lines
 *
 * For a reader who may not see everything, nodes are asked without any filter that could tell what is hidden. The last flows of such
 * a reader are looked for among the newest of each node, and then among more of them.
 */
import type { FlowAnswer, FlowExplanation, FlowQuestion, FlowRollup } from "../../flows/flow-answer.ts";
import { type FlowQuery, MOST_LAST, matcherOf } from "../../flows/flow-query.ts";
import type { FlowLosses, FlowRecord } from "../../flows/flow-record.ts";
import { targetOf } from "../../flows/flow-request.ts";
import {
  HIDDEN_NODE,
  mergedRollups,
  namespacesIn,
  type Sight,
  visibleExplanation,
  visibleFlow,
  visibleRollup,
} from "../../flows/visible-flows.ts";
import { parsePrefixOrAddress } from "../../ip/prefix.ts";
import { AsTheyCome, type NodeStream, oldestFirst } from "./answers-in-order.ts";
import type { NodeLink, NodeLinks } from "./node-links.ts";

/** What the caller may see, as it is known at the moment. */
export interface Reader {
  seesEverything(): boolean;
  seesNodes(): boolean;
  /** For what is in these namespaces. */
  sightFor(namespaces: readonly string[]): Promise<Sight>;
  mayListPolicies(namespace: string | undefined): Promise<boolean>;
}

export interface ClusterFlowsOptions {
  readonly links: Pick<NodeLinks, "all" | "onLink">;
  /** The nodes that have a link, if everything is well. Resolves when they had time to open it. */
  readonly expectedNodes: () => Promise<readonly string[]>;
  readonly now: () => number;
  /** Milliseconds until a node that says nothing is given up. */
  readonly patience?: number;
}

const PATIENCE = 10_000;
/** Lines of all nodes together that may wait in memory for one answer. */
const MOST_WAITING = 16_384;
const MOST_OF_NODE = 1_024;
const MOST_ROLLUPS = 200_000;
/** Of the newest flows of each node: among these the last ones of a reader are looked for first, then among so many times more. */
const FIRST_NEWEST = 256;
const MORE_NEWEST = 8;

export class ClusterFlows {
  constructor(private readonly options: ClusterFlowsOptions) {}

  /** Throws `FlowQueryError` before the first answer, for a question that cannot be answered. */
  async *answer(question: FlowQuestion, reader: Reader, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const expected = await this.options.expectedNodes();
    const since = this.options.now();
    // Who may not know nodes would learn from what this one does not answer that it exists.
    const wanted = question.kind === "explanation" || !reader.seesNodes() ? undefined : question.query.node;
    const isAsked = (node: string) => wanted === undefined || node === wanted;
    const links = this.options.links.all.filter(({ node }) => isAsked(node));
    const linked = new Set(links.map(({ node }) => node));
    const problems = new Problems(reader);
    for (const node of expected)
      if (isAsked(node) && !linked.has(node))
        yield* problems.of(node, "it has no link to the controllers: its agent does not run, or flows are off there");

    const ending = new AbortController();
    const stop = AbortSignal.any([signal, ending.signal]);
    const lines = Math.max(16, Math.min(MOST_OF_NODE, Math.floor(MOST_WAITING / Math.max(links.length, 1))));
    const asked = await pushedDown(question, reader);
    const streamOf = (link: NodeLink, changes: FlowChanges = {}): NodeStream => ({
      node: link.node,
      answers: link.ask(targetOf(withChanges(asked, changes)), { lines, signal: stop })[Symbol.asyncIterator](),
    });
    const nodes: AskedNodes = { links, isAsked, streamOf, stop, since };
    try {
      yield* problems.filtered(this.seenBy(reader, question, nodes));
    } finally {
      ending.abort();
    }
    yield* problems.rest();
    const follows = question.kind === "flows" && question.follow;
    if (signal.aborted && !follows) yield { problem: { message: "the answer is not complete: it took too long" } };
  }

  private async *seenBy(reader: Reader, question: FlowQuestion, nodes: AskedNodes): AsyncIterable<FlowAnswer> {
    const { links, streamOf, stop } = nodes;
    switch (question.kind) {
      case "flows": {
        const answers = visibleFlows(reader, question.query, this.flows(reader, question, nodes));
        return yield* lastOf(question.query.last, answers, stop);
      }
      case "rollups": {
        const streams = links.map((link) => streamOf(link));
        return yield* visibleRollups(reader, question.query, asTheyCome(streams, stop));
      }
      case "explanation": {
        const streams = links.map((link) => streamOf(link));
        const limit = AbortSignal.any([stop, AbortSignal.timeout(this.patience)]);
        return yield* explanations(reader, question.id, asTheyCome(streams, limit));
      }
    }
  }

  private async *flows(reader: Reader, question: FlowsQuestion, nodes: AskedNodes): AsyncIterable<FlowAnswer> {
    const { links, stop, isAsked, streamOf, since } = nodes;
    const { patience } = this;
    const isSearched = (question.query.last ?? 0) > 0 && !reader.seesEverything();
    if (!question.follow) {
      if (isSearched) return yield* this.newest(reader, question.query, nodes);
      return yield* oldestFirst(
        links.map((link) => streamOf(link)),
        { patience },
      );
    }
    const news = new AsTheyCome();
    // A node that comes, or comes again, is asked for what happened meanwhile.
    using _listening = this.options.links.onLink((link) => {
      if (isAsked(link.node)) news.add(streamOf(link, { since, last: undefined }));
    });
    const following: NodeStream[] = [];
    const streams = links.map((link) => streamOf(link, isSearched ? { last: 0 } : {}));
    yield* oldestFirst(streams, { patience, following });
    // What comes meanwhile waits in the streams.
    if (isSearched) yield* this.newest(reader, question.query, nodes);
    yield END_OF_PAST;
    for (const stream of following) news.add(stream);
    yield* news.answers(stop, "goes on");
  }

  /** The last flows that the reader may see and asks for, the oldest first; with what nodes said besides. */
  private async *newest(
    reader: Reader,
    query: FlowQuery,
    { links, streamOf, stop }: AskedNodes,
  ): AsyncIterable<FlowAnswer> {
    const last = query.last ?? 0;
    for (
      let most = Math.min(Math.max(last, FIRST_NEWEST), MOST_LAST);
      ;
      most = Math.min(most * MORE_NEWEST, MOST_LAST)
    ) {
      const streams = links.map((link) => streamOf(link, { last: most, follow: false }));
      const found = await newestOf(reader, { ...query, last }, oldestFirst(streams, { patience: this.patience }));
      // It took too long: the oldest ones of the newest are not the last ones.
      if (stop.aborted) return;
      const isMore = found.nodes.some(({ count, leftAt }) => count >= most && leftAt > found.oldest);
      if (isMore && most < MOST_LAST) continue;
      yield* found.others;
      for (const flow of found.flows) yield { flow };
      if (isMore)
        yield {
          problem: {
            message: `there may be more: only the newest ${MOST_LAST} flows of each node were looked at; use "since" in place of "last", or "namespace"`,
          },
        };
      return;
    }
  }

  private get patience(): number {
    return this.options.patience ?? PATIENCE;
  }
}

type FlowsQuestion = FlowQuestion & { readonly kind: "flows" };

/** Of a question about flows, for one of several times that a node is asked. */
interface FlowChanges {
  readonly last?: number | undefined;
  readonly since?: number;
  readonly follow?: false;
}

interface AskedNodes {
  readonly links: readonly NodeLink[];
  readonly isAsked: (node: string) => boolean;
  readonly streamOf: (link: NodeLink, changes?: FlowChanges) => NodeStream;
  readonly stop: AbortSignal;
  /** When the question came. */
  readonly since: number;
}

function withChanges(question: FlowQuestion, changes: FlowChanges): FlowQuestion {
  if (question.kind !== "flows") return question;
  const { follow = question.follow } = changes;
  const { last, ...query } = question.query;
  const most = "last" in changes ? changes.last : last;
  const { since = query.since } = changes;
  return {
    ...{ kind: "flows", follow },
    query: { ...query, ...(most === undefined ? {} : { last: most }), ...(since === undefined ? {} : { since }) },
  };
}

interface Found {
  readonly flows: readonly FlowRecord[];
  readonly others: readonly FlowAnswer[];
  /** When the first of so many as were asked for began. */
  readonly oldest: number;
  /** `leftAt`: what the node has not said had changed by then. */
  readonly nodes: readonly { readonly count: number; readonly leftAt: number }[];
}

async function newestOf(
  reader: Reader,
  query: FlowQuery & { readonly last: number },
  answers: AsyncIterable<FlowAnswer>,
): Promise<Found> {
  const { last } = query;
  const matches = matcherOf(query);
  const others: FlowAnswer[] = [];
  const nodes = new Map<string, { count: number; leftAt: number }>();
  let flows: FlowRecord[] = [];
  for await (const answer of answers) {
    if (!("flow" in answer)) {
      others.push(answer);
      continue;
    }
    const { flow } = answer;
    const { count, leftAt } = nodes.get(flow.node) ?? { count: 0, leftAt: Number.POSITIVE_INFINITY };
    nodes.set(flow.node, { count: count + 1, leftAt: Math.min(leftAt, flow.end) });
    const visible = visibleFlow(flow, await reader.sightFor(namespacesIn(answer)));
    if (visible === undefined || !matches(visible)) continue;
    flows.push(flow);
    if (flows.length > 2 * last) flows = flows.slice(-last);
  }
  flows = flows.slice(-last);
  const oldest = flows.length < last ? Number.NEGATIVE_INFINITY : (flows[0]?.start ?? 0);
  return { flows, others, oldest, nodes: [...nodes.values()] };
}

/** Between what was and what comes; never sent to anybody. */
const END_OF_PAST: FlowAnswer = { problem: { message: "" } };

async function* asTheyCome(streams: readonly NodeStream[], stop: AbortSignal): AsyncIterable<FlowAnswer> {
  const all = new AsTheyCome();
  for (const stream of streams) all.add(stream);
  yield* all.answers(stop);
}

/** What a node may be asked for: filters by what is hidden would be answered, and so tell it. */
async function pushedDown(question: FlowQuestion, reader: Reader): Promise<FlowQuestion> {
  if (question.kind === "explanation" || reader.seesEverything()) return question;
  // These are shown of each flow that is shown at all.
  const { pod: _, label: _label, policy: _policy, node: _node, last, namespace, from, to, ...shown } = question.query;
  const query: FlowQuery = {
    ...shown,
    // Nothing of a namespace is hidden whose pods the reader may list.
    ...(namespace !== undefined && (await seesNamespace(reader, namespace)) ? { namespace } : {}),
    ...(from !== undefined && isAboutAddresses(from) ? { from } : {}),
    ...(to !== undefined && isAboutAddresses(to) ? { to } : {}),
    // None of the past, for whoever follows.
    ...(last === 0 ? { last } : {}),
  };
  return { ...question, query };
}

async function seesNamespace(reader: Reader, namespace: string): Promise<boolean> {
  const { everyPod, podsOf } = await reader.sightFor([namespace]);
  return everyPod || podsOf.has(namespace);
}

/** Addresses stay, and so does it that nobody has one. */
function isAboutAddresses(end: string): boolean {
  return end === "outside" || parsePrefixOrAddress(end) !== undefined;
}

async function* visibleFlows(
  reader: Reader,
  query: FlowQuery,
  answers: AsyncIterable<FlowAnswer>,
): AsyncIterable<FlowAnswer> {
  const matches = matcherOf(query);
  for await (const answer of answers) {
    const visible =
      "flow" in answer ? visibleFlow(answer.flow, await reader.sightFor(namespacesIn(answer))) : undefined;
    if (visible === undefined && !("flow" in answer)) yield answer;
    else if (visible !== undefined && matches(visible)) yield { flow: visible };
  }
}

/** Of the past, only so many; of what comes, all. If it took too long, none: those that were read are the oldest ones. */
async function* lastOf(
  last: number | undefined,
  answers: AsyncIterable<FlowAnswer>,
  stop: AbortSignal,
): AsyncIterable<FlowAnswer> {
  if (last === undefined) {
    for await (const answer of answers) if (answer !== END_OF_PAST) yield answer;
    return;
  }
  let kept: FlowAnswer[] | undefined = [];
  for await (const answer of answers) {
    if (answer === END_OF_PAST) {
      if (last > 0) yield* kept?.slice(-last) ?? [];
      kept = undefined;
    } else if (kept === undefined || !("flow" in answer)) yield answer;
    else {
      kept.push(answer);
      if (kept.length >= 2 * last + 1) kept = last === 0 ? [] : kept.slice(-last);
    }
  }
  if (kept !== undefined && last > 0 && !stop.aborted) yield* kept.slice(-last);
}

async function* visibleRollups(
  reader: Reader,
  query: FlowQuery,
  answers: AsyncIterable<FlowAnswer>,
): AsyncIterable<FlowAnswer> {
  if (reader.seesEverything()) return yield* answers;
  const matches = matcherOf(query);
  let visible: readonly FlowRollup[] = [];
  let fresh: FlowRollup[] = [];
  for await (const answer of answers) {
    if (!("rollup" in answer)) {
      yield answer;
      continue;
    }
    const seen = visibleRollup(answer.rollup, await reader.sightFor(namespacesIn(answer)));
    if (seen === undefined || !matches(recordLike(seen))) continue;
    fresh.push(seen);
    if (fresh.length < MOST_ROLLUPS / 10) continue;
    visible = mergedRollups([...visible, ...fresh]);
    fresh = [];
    if (visible.length > MOST_ROLLUPS)
      return yield { problem: { message: "there are too many roll-ups to sum them; ask for a shorter time" } };
  }
  for (const rollup of mergedRollups([...visible, ...fresh])) yield { rollup };
}

/** A record with what a roll-up says, for the same filters: names are those of owners, and there are no labels. */
function recordLike(rollup: FlowRollup): FlowRecord {
  const { node, from, until, source, destination, protocol, port, verdict, rules } = rollup;
  const decisions = rules.map((text) => ({
    ...({ point: "host in", verdict: "unknown" } as const),
    rule: text.slice(text.indexOf(": ") + 2),
  }));
  return {
    ...{ id: "", node, family: 4, protocol, verdict, decisions, direction: "both", state: "ended" },
    source: { ...source, address: "" },
    destination: { ...destination, address: "", ...(port === undefined ? {} : { port }) },
    ...{ start: from, end: until, sent: NOTHING_COUNTED, received: NOTHING_COUNTED },
  };
}

const NOTHING_COUNTED = { packets: 0, bytes: 0 };

/** IDs are unique. If several nodes claim one, none is believed: a node could answer for the flows of others. */
async function* explanations(
  reader: Reader,
  id: string,
  answers: AsyncIterable<FlowAnswer>,
): AsyncIterable<FlowAnswer> {
  const visible = new Map<string, FlowExplanation>();
  const claimed = new Set<string>();
  for await (const answer of answers) {
    // A node that fails has no link any more, or does not know the flow.
    if (!("explanation" in answer) || answer.explanation.flow.id !== id) continue;
    const { explanation } = answer;
    claimed.add(explanation.flow.node);
    const namespaces = namespacesIn(answer);
    const ofPolicies = new Map<string | undefined, boolean>();
    for (const namespace of [undefined, ...namespaces]) {
      ofPolicies.set(namespace, await reader.mayListPolicies(namespace));
    }
    const sight = await reader.sightFor(namespaces);
    const seen = visibleExplanation(explanation, sight, (namespace) => ofPolicies.get(namespace) === true);
    if (seen !== undefined) visible.set(explanation.flow.node, seen);
  }
  if (visible.size > 0 && claimed.size > 1) {
    const names = reader.seesNodes() ? `: ${[...claimed].toSorted().join(", ")}` : "";
    yield { problem: { message: `several nodes say that this flow is theirs, so it is not explained${names}` } };
    return;
  }
  for (const explanation of visible.values()) yield { explanation };
}

/** Problems and losses of nodes, for a reader who may know their names, or without them. */
class Problems {
  private unnamed = 0;
  private readonly losses = new Map<string, FlowLosses>();

  constructor(private readonly reader: Reader) {}

  *of(node: string | undefined, message: string): Iterable<FlowAnswer> {
    if (this.reader.seesNodes()) yield { problem: { ...(node === undefined ? {} : { node }), message } };
    else if (node === undefined) yield { problem: { message } };
    else this.unnamed += 1;
  }

  async *filtered(answers: AsyncIterable<FlowAnswer>): AsyncIterable<FlowAnswer> {
    for await (const answer of answers) {
      if ("problem" in answer) yield* this.of(answer.problem.node, answer.problem.message);
      else if ("losses" in answer && !this.reader.seesNodes()) {
        const { node, ...losses } = answer.losses;
        this.losses.set(node, losses);
      } else yield answer;
    }
  }

  *rest(): Iterable<FlowAnswer> {
    if (this.unnamed > 0) yield { problem: { message: `${this.unnamed} nodes did not answer, or not completely` } };
    const [first, ...others] = this.losses.values();
    if (first === undefined) return;
    const summed = others.reduce((sum, losses) => {
      const keys = Object.keys(sum) as (keyof FlowLosses)[];
      return Object.fromEntries(keys.map((key) => [key, sum[key] + losses[key]])) as unknown as FlowLosses;
    }, first);
    yield { losses: { node: HIDDEN_NODE, ...summed } };
  }
}
