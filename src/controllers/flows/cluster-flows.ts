/**
 * The answer of the whole cluster to one reader:
 *
 *   question ──> every node ──> in order ──> what the reader may see ──> what the reader asked for ──> lines
 *
 * A reader who may not see everything is asked for at the nodes without any filter that could tell what is hidden.
 */
import type { FlowAnswer, FlowQuestion, FlowRollup } from "../../flows/flow-answer.ts";
import { type FlowQuery, matcherOf } from "../../flows/flow-query.ts";
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

export class ClusterFlows {
  constructor(private readonly options: ClusterFlowsOptions) {}

  /** Throws `FlowQueryError` before the first answer, for a question that cannot be answered. */
  async *answer(question: FlowQuestion, reader: Reader, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const expected = await this.options.expectedNodes();
    const since = this.options.now();
    const wanted = question.kind === "explanation" ? undefined : question.query.node;
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
    const streamOf = (link: NodeLink, asked: FlowQuestion): NodeStream => ({
      node: link.node,
      answers: link.ask(targetOf(pushedDown(asked, reader)), { lines, signal: stop })[Symbol.asyncIterator](),
    });
    const streams = links.map((link) => streamOf(link, question));
    try {
      const answers =
        question.kind === "flows"
          ? this.flows(question, streams, { stop, isAsked, streamOf, since })
          : asTheyCome(streams, stop);
      yield* problems.filtered(seenBy(reader, question, answers));
    } finally {
      ending.abort();
    }
    yield* problems.rest();
    const follows = question.kind === "flows" && question.follow;
    if (signal.aborted && !follows) yield { problem: { message: "the answer is not complete: it took too long" } };
  }

  private async *flows(
    question: FlowQuestion & { readonly kind: "flows" },
    streams: readonly NodeStream[],
    more: {
      readonly stop: AbortSignal;
      readonly isAsked: (node: string) => boolean;
      readonly streamOf: (link: NodeLink, asked: FlowQuestion) => NodeStream;
      readonly since: number;
    },
  ): AsyncIterable<FlowAnswer> {
    const { stop, isAsked, streamOf, since } = more;
    const patience = this.options.patience ?? PATIENCE;
    if (!question.follow) return yield* oldestFirst(streams, { patience });
    const news = new AsTheyCome();
    // A node that comes, or comes again, is asked for what happened meanwhile.
    const { last: _, ...query } = question.query;
    using _listening = this.options.links.onLink((link) => {
      if (isAsked(link.node)) news.add(streamOf(link, { ...question, query: { ...query, since } }));
    });
    const following: NodeStream[] = [];
    yield* oldestFirst(streams, { patience, following });
    yield END_OF_PAST;
    for (const stream of following) news.add(stream);
    yield* news.answers(stop, "goes on");
  }
}

/** Between what was and what comes; never sent to anybody. */
const END_OF_PAST: FlowAnswer = { problem: { message: "" } };

async function* asTheyCome(streams: readonly NodeStream[], stop: AbortSignal): AsyncIterable<FlowAnswer> {
  const all = new AsTheyCome();
  for (const stream of streams) all.add(stream);
  yield* all.answers(stop);
}

/** What a node may be asked for: filters by what is hidden would be answered, and so tell it. */
function pushedDown(question: FlowQuestion, reader: Reader): FlowQuestion {
  if (question.kind === "explanation" || reader.seesEverything()) return question;
  const { since, until, port, protocol, verdict } = question.query;
  const query: FlowQuery = {
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(port === undefined ? {} : { port }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(verdict === undefined ? {} : { verdict }),
  };
  return { ...question, query };
}

async function* seenBy(
  reader: Reader,
  question: FlowQuestion,
  answers: AsyncIterable<FlowAnswer>,
): AsyncIterable<FlowAnswer> {
  switch (question.kind) {
    case "flows":
      return yield* lastOf(question.query.last, visibleFlows(reader, question.query, answers));
    case "rollups":
      return yield* visibleRollups(reader, question.query, answers);
    case "explanation":
      return yield* explanations(reader, answers);
  }
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

/** Of the past, only so many; of what comes, all. */
async function* lastOf(last: number | undefined, answers: AsyncIterable<FlowAnswer>): AsyncIterable<FlowAnswer> {
  let kept: FlowAnswer[] | undefined = last === undefined ? undefined : [];
  for await (const answer of answers) {
    if (answer === END_OF_PAST) {
      yield* kept ?? [];
      kept = undefined;
    } else if (kept === undefined || last === undefined || !("flow" in answer)) yield answer;
    else {
      kept.push(answer);
      if (kept.length >= 2 * last + 1) kept = last === 0 ? [] : kept.slice(-last);
    }
  }
  if (kept !== undefined && last !== undefined && last > 0) yield* kept.slice(-last);
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

async function* explanations(reader: Reader, answers: AsyncIterable<FlowAnswer>): AsyncIterable<FlowAnswer> {
  for await (const answer of answers) {
    // A node that fails has no link any more, or does not know the flow.
    if (!("explanation" in answer)) continue;
    const { explanation } = answer;
    const namespaces = namespacesIn(answer);
    const ofPolicies = new Map<string | undefined, boolean>();
    for (const namespace of [undefined, ...namespaces]) {
      ofPolicies.set(namespace, await reader.mayListPolicies(namespace));
    }
    const sight = await reader.sightFor(namespaces);
    const visible = visibleExplanation(explanation, sight, (namespace) => ofPolicies.get(namespace) === true);
    // IDs are unique: no other node has it.
    if (visible !== undefined) return yield { explanation: visible };
  }
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
