/** Puts together what several nodes answer at the same time. */
import type { FlowAnswer } from "../../flows/flow-answer.ts";

export interface NodeStream {
  readonly node: string;
  readonly answers: AsyncIterator<FlowAnswer>;
}

/** What a stream has come to: the next flow, or that there is none for now. */
type Head =
  | { readonly kind: "answer"; readonly answer: FlowAnswer }
  | { readonly kind: "over" }
  | { readonly kind: "failed"; readonly message: string };

const NO_ANSWER = "it did not answer in time";

/**
 * The flows of all nodes, the oldest first, and whatever else they say. A node that follows flows has said what it had when it
 * says its losses: its stream is then left as it is, in `following`. One without an answer for so long is a problem.
 */
export async function* oldestFirst(
  streams: readonly NodeStream[],
  { patience, following }: { readonly patience: number; readonly following?: NodeStream[] },
): AsyncIterable<FlowAnswer> {
  const heads = new Map<NodeStream, Head>();
  const open = new Set(streams);
  while (open.size > 0) {
    const missing = [...open].filter((stream) => !heads.has(stream));
    await Promise.all(missing.map(async (stream) => heads.set(stream, await headOf(stream, patience))));
    for (const stream of open) {
      const head = heads.get(stream);
      if (head?.kind === "answer" && "flow" in head.answer) continue;
      heads.delete(stream);
      if (head?.kind === "answer") {
        yield head.answer;
        if (!("losses" in head.answer) || following === undefined) continue;
        following.push(stream);
      }
      open.delete(stream);
      if (head?.kind === "failed") yield { problem: { node: stream.node, message: head.message } };
    }
    const oldest = oldestOf(heads);
    // Only when every open stream has a flow it is known which is the oldest one.
    if (oldest === undefined || heads.size < open.size) continue;
    heads.delete(oldest.stream);
    yield oldest.answer;
  }
}

function oldestOf(heads: ReadonlyMap<NodeStream, Head>) {
  let oldest: { readonly stream: NodeStream; readonly answer: FlowAnswer; readonly start: number } | undefined;
  for (const [stream, head] of heads) {
    if (head.kind !== "answer" || !("flow" in head.answer)) continue;
    const { start } = head.answer.flow;
    if (oldest === undefined || start < oldest.start) oldest = { stream, answer: head.answer, start };
  }
  return oldest;
}

async function headOf({ answers }: NodeStream, patience: number): Promise<Head> {
  const { promise: late, resolve } = Promise.withResolvers<Head>();
  const timer = setTimeout(() => resolve({ kind: "failed", message: NO_ANSWER }), patience);
  try {
    const head = await Promise.race([nextOf(answers), late]);
    // The node is not asked any more; its generator cannot end before it has answered.
    if (head.kind === "failed") void answers.return?.().catch(() => {});
    return head;
  } finally {
    clearTimeout(timer);
  }
}

async function nextOf(answers: AsyncIterator<FlowAnswer>): Promise<Head> {
  try {
    const { done, value } = await answers.next();
    return done === true ? { kind: "over" } : { kind: "answer", answer: value };
  } catch (failure) {
    return { kind: "failed", message: failure instanceof Error ? failure.message : String(failure) };
  }
}

/**
 * Answers in the order in which they come; more streams may be added while it is read. Bounded by what streams hold back. Costs the
 * same for each answer, however many streams are quiet: nothing waits for all of them.
 */
export class AsTheyCome {
  /** Have not ended. */
  private readonly open = new Set<NodeStream>();
  private heads: (readonly [NodeStream, Head])[] = [];
  private news = Promise.withResolvers<void>();

  add(stream: NodeStream): void {
    this.open.add(stream);
    this.pull(stream);
  }

  /** `goesOn`: waits for more streams when all have ended, until the signal is aborted. */
  async *answers(signal: AbortSignal, goesOn?: "goes on"): AsyncIterable<FlowAnswer> {
    const stop = () => this.news.resolve();
    signal.addEventListener("abort", stop);
    try {
      while (!signal.aborted && (this.open.size > 0 || goesOn !== undefined)) {
        const head = this.heads.shift();
        if (head !== undefined) {
          yield* this.taken(head);
          continue;
        }
        await this.news.promise;
        this.news = Promise.withResolvers();
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  private *taken([stream, head]: readonly [NodeStream, Head]): Iterable<FlowAnswer> {
    if (head.kind === "answer") {
      this.pull(stream);
      yield head.answer;
      return;
    }
    this.open.delete(stream);
    if (head.kind === "failed") yield { problem: { node: stream.node, message: head.message } };
  }

  private pull(stream: NodeStream): void {
    void nextOf(stream.answers).then((head) => {
      this.heads.push([stream, head]);
      this.news.resolve();
    });
  }
}
