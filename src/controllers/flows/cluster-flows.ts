/**
 * The answer of the whole cluster to one reader:
 *
 *   question, what the reader may see ──> every node ──> in order ──> what the reader may see, the rest hidden ──> lines
 *
 * Nodes are told what the reader may see, and filter by what is shown of a flow (`visibleMatcher`): so they send no more than the
 * reader gets, and no filter tells what is hidden. What a node sends is hidden and filtered here again: nobody relies on the node.
 */
import { counted } from "../../counted.ts";
import type { FlowAnswer, FlowExplanation, FlowFilter, FlowQuestion, FlowRollup } from "../../flows/flow-answer.ts";
import { FlowQueryError, matcherOf, type Sight } from "../../flows/flow-query.ts";
import type { FlowLosses } from "../../flows/flow-record.ts";
import { targetOf } from "../../flows/flow-request.ts";
import {
  HIDDEN_NODE,
  mergedRollups,
  namespacesIn,
  sightText,
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
  /** Of all namespaces that there are. If they are too many: of this one, or throws `FlowQueryError`. */
  wholeSight(namespace: string | undefined): Promise<Sight>;
  mayListPolicies(namespace: string | undefined): Promise<boolean>;
  mayListClusterPolicies(): Promise<boolean>;
  /** Called when `wholeSight()` may have changed. */
  onReview(listener: () => void): Disposable;
}

export interface ClusterFlowsOptions {
  readonly links: Pick<NodeLinks, "all" | "onLink">;
  /** The nodes that have a link, if everything is well. Resolves when they had time to open it. */
  readonly expectedNodes: () => Promise<ExpectedNodes>;
  readonly now: () => number;
  /** Milliseconds until a node that says nothing is given up. */
  readonly patience?: number;
}

export interface ExpectedNodes {
  readonly nodes: readonly string[];
  /** Why none of them can have a link, in words. */
  readonly problem?: string;
}

const NO_LINK = "it has no link to the controllers: its agent does not run, or flows are off there";
const PATIENCE = 10_000;
/** Lines of all nodes together that may wait in memory for one answer. */
const MOST_WAITING = 16_384;
const MOST_OF_NODE = 1_024;
const MOST_ROLLUPS = 200_000;
/** What a review says may be so old. */
const STALE_MILLISECONDS = 30_000;

export class ClusterFlows {
  constructor(private readonly options: ClusterFlowsOptions) {}

  /** Throws `FlowQueryError` for a question that cannot be answered. */
  async answer(question: FlowQuestion, reader: Reader, signal: AbortSignal): Promise<AsyncIterable<FlowAnswer>> {
    return this.answers(await seenBy(reader, question), reader, signal);
  }

  private async *answers(question: FlowQuestion, reader: Reader, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const expected = await this.options.expectedNodes();
    const since = this.options.now();
    // Who may not know nodes would learn from what this one does not answer that it exists.
    const wanted = question.kind === "explanation" || !reader.seesNodes() ? undefined : question.query.node;
    const isAsked = (node: string) => wanted === undefined || node === wanted;
    const links = () => this.options.links.all.filter(({ node }) => isAsked(node));
    const linked = new Set(links().map(({ node }) => node));
    const problems = new Problems(reader);
    if (expected.problem !== undefined) yield { problem: { message: expected.problem } };
    for (const node of expected.nodes)
      if (expected.problem === undefined && isAsked(node) && !linked.has(node)) yield* problems.of(node, NO_LINK);

    const ending = new AbortController();
    const stop = AbortSignal.any([signal, ending.signal]);
    const lines = Math.max(16, Math.min(MOST_OF_NODE, Math.floor(MOST_WAITING / Math.max(linked.size, 1))));
    const streamOf = (link: NodeLink, each: FlowQuestion, until = stop): NodeStream => ({
      node: link.node,
      answers: link.ask(targetOf(each), { lines, signal: until })[Symbol.asyncIterator](),
    });
    const nodes: AskedNodes = { links, isAsked, streamOf, stop, end: () => ending.abort(), since };
    try {
      yield* problems.filtered(this.shown(reader, question, nodes));
    } finally {
      ending.abort();
    }
    yield* problems.rest();
    const follows = question.kind === "flows" && question.follow;
    if (signal.aborted && !follows) yield { problem: { message: "the answer is not complete: it took too long" } };
  }

  private async *shown(reader: Reader, asked: FlowQuestion, nodes: AskedNodes): AsyncIterable<FlowAnswer> {
    const { links, streamOf, stop } = nodes;
    const streams = () => links().map((link) => streamOf(link, asked));
    switch (asked.kind) {
      case "flows": {
        const answers = asked.follow
          ? this.followed(reader, asked, nodes)
          : visibleFlows(asked, oldestFirst(streams(), { patience: this.patience }));
        return yield* lastOf(asked.query.last, answers, stop);
      }
      case "rollups":
        return yield* visibleRollups(asked.sight, asTheyCome(streams(), stop));
      case "explanation": {
        const limit = AbortSignal.any([stop, AbortSignal.timeout(this.patience)]);
        return yield* explanations(reader, asked.id, asTheyCome(streams(), limit));
      }
    }
  }

  /** What was, `END_OF_PAST`, and what comes. If the reader may see something else meanwhile, nodes are asked again. */
  private async *followed(reader: Reader, asked: FlowsQuestion, nodes: AskedNodes): AsyncIterable<FlowAnswer> {
    const { links, stop, isAsked, streamOf, since } = nodes;
    const news = new AsTheyCome();
    const round: Round = { asked, show: visibleAnswers(asked), reviewed: since, ending: new AbortController() };
    let isPast = true;
    const ask = (link: NodeLink, from: number) => {
      const { last: _, ...query } = round.asked.query;
      const until = AbortSignal.any([stop, round.ending.signal]);
      news.add(streamOf(link, { ...round.asked, query: { ...query, since: from } }, until));
    };
    // A node that comes, or comes again, is asked for what happened meanwhile.
    using _listening = this.options.links.onLink((link) => {
      if (isAsked(link.node)) ask(link, since);
    });
    const askAgain = (from: number) => {
      round.ending.abort();
      round.ending = new AbortController();
      for (const link of links()) ask(link, from);
    };
    using _reviewing = reader.onReview(async () => {
      const { reviewed } = round;
      round.reviewed = this.options.now();
      const next = await seenBy(reader, asked).catch(() => undefined);
      // What the reader may see is not known any more.
      if (next?.kind !== "flows") return nodes.end();
      if (stop.aborted || sameSight(next.sight, round.asked.sight)) return;
      round.asked = next;
      round.show = visibleAnswers(next);
      // What was before the question is the past, of which only so much was asked for.
      const from = Math.max(since, reviewed - STALE_MILLISECONDS);
      if (isPast) round.changedSince ??= from;
      else askAgain(from);
    });
    const following: NodeStream[] = [];
    const until = AbortSignal.any([stop, round.ending.signal]);
    const streams = links().map((link) => streamOf(link, asked, until));
    for await (const answer of oldestFirst(streams, { patience: this.patience, following })) yield* round.show(answer);
    yield END_OF_PAST;
    for (const stream of following) news.add(stream);
    isPast = false;
    if (round.changedSince !== undefined) askAgain(round.changedSince);
    for await (const answer of news.answers(stop, "goes on")) yield* round.show(answer);
  }

  private get patience(): number {
    return this.options.patience ?? PATIENCE;
  }
}

type FlowsQuestion = FlowQuestion & { readonly kind: "flows" };

/** What nodes are asked, until the reader may see something else. */
interface Round {
  asked: FlowsQuestion;
  show: (answer: FlowAnswer) => readonly FlowAnswer[];
  reviewed: number;
  ending: AbortController;
  /** The reader may see something else since the past began to be read. */
  changedSince?: number;
}

interface AskedNodes {
  readonly links: () => readonly NodeLink[];
  readonly isAsked: (node: string) => boolean;
  readonly streamOf: (link: NodeLink, asked: FlowQuestion, until?: AbortSignal) => NodeStream;
  readonly stop: AbortSignal;
  /** The answer ends. */
  readonly end: () => void;
  /** When the question came. */
  readonly since: number;
}

/** The question as nodes are asked it: about what the reader may see. Throws `FlowQueryError`. */
async function seenBy(reader: Reader, question: FlowQuestion): Promise<FlowQuestion> {
  if (question.kind === "explanation" || reader.seesEverything()) return question;
  const { node, namespace } = question.query;
  if (question.kind === "rollups" && node !== undefined && !reader.seesNodes())
    throw new FlowQueryError("node", "sums are not shown by node to those who may not list nodes; leave it out");
  return { ...question, sight: await reader.wholeSight(namespace) };
}

function sameSight(left: Sight | undefined, right: Sight | undefined): boolean {
  return (left && sightText(left)) === (right && sightText(right));
}

/** Between what was and what comes; never sent to anybody. */
const END_OF_PAST: FlowAnswer = { problem: { message: "" } };

async function* asTheyCome(streams: readonly NodeStream[], stop: AbortSignal): AsyncIterable<FlowAnswer> {
  const all = new AsTheyCome();
  for (const stream of streams) all.add(stream);
  yield* all.answers(stop);
}

async function* visibleFlows(filter: FlowFilter, answers: AsyncIterable<FlowAnswer>): AsyncIterable<FlowAnswer> {
  const show = visibleAnswers(filter);
  for await (const answer of answers) yield* show(answer);
}

/** Nothing of a flow that the reader may not see, or did not ask for; everything else as it is. */
function visibleAnswers({ query, sight }: FlowFilter): (answer: FlowAnswer) => readonly FlowAnswer[] {
  const matches = matcherOf(query);
  return (answer) => {
    if (!("flow" in answer)) return [answer];
    const flow = sight === undefined ? answer.flow : visibleFlow(answer.flow, sight);
    return flow !== undefined && matches(flow) ? [{ flow }] : [];
  };
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

/** Which of them the reader asked for only the nodes know, who have the flows: a roll-up has no pods and labels. */
async function* visibleRollups(
  sight: Sight | undefined,
  answers: AsyncIterable<FlowAnswer>,
): AsyncIterable<FlowAnswer> {
  if (sight === undefined) return yield* answers;
  let visible: readonly FlowRollup[] = [];
  let fresh: FlowRollup[] = [];
  for await (const answer of answers) {
    if (!("rollup" in answer)) {
      yield answer;
      continue;
    }
    const seen = visibleRollup(answer.rollup, sight);
    if (seen === undefined) continue;
    fresh.push(seen);
    if (fresh.length < MOST_ROLLUPS / 10) continue;
    visible = mergedRollups([...visible, ...fresh]);
    fresh = [];
    if (visible.length > MOST_ROLLUPS)
      return yield { problem: { message: "there are too many roll-ups to sum them; ask for a shorter time" } };
  }
  for (const rollup of mergedRollups([...visible, ...fresh])) yield { rollup };
}

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
    const seen = visibleExplanation(explanation, sight, {
      of: (namespace) => ofPolicies.get(namespace) === true,
      clusterPolicies: await reader.mayListClusterPolicies(),
    });
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
    if (this.unnamed > 0)
      yield { problem: { message: `${counted(this.unnamed, "node")} did not answer, or not completely` } };
    const [first, ...others] = this.losses.values();
    if (first === undefined) return;
    const all = [first, ...others];
    // A node without staged policies has no number of what it has not judged.
    const keys = new Set(all.flatMap((losses) => Object.keys(losses) as (keyof FlowLosses)[]));
    const sumOf = (key: keyof FlowLosses) => all.reduce((sum, losses) => sum + (losses[key] ?? 0), 0);
    const summed = Object.fromEntries(Array.from(keys, (key) => [key, sumOf(key)])) as unknown as FlowLosses;
    yield { losses: { node: HIDDEN_NODE, ...summed } };
  }
}
