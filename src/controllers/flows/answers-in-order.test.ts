import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { AsTheyCome, type NodeStream } from "./answers-in-order.ts";

const ANSWER: FlowAnswer = { problem: { message: "an answer" } };

/** So many answers, then it ends; each in a turn of its own. */
async function* answersOf(count: number, message = "an answer"): AsyncGenerator<FlowAnswer> {
  for (let index = 0; index < count; index++) yield { problem: { message } };
}

function quiet(node: string): NodeStream {
  const { promise } = Promise.withResolvers<IteratorResult<FlowAnswer>>();
  return { node, answers: { next: () => promise } };
}

async function allOf(answers: AsyncIterable<FlowAnswer>): Promise<readonly FlowAnswer[]> {
  const all: FlowAnswer[] = [];
  for await (const answer of answers) all.push(answer);
  return all;
}

describe("AsTheyCome", () => {
  test("has the answers of all streams, and names the node whose stream fails", async () => {
    const all = new AsTheyCome();
    all.add({ node: "n1", answers: answersOf(3) });
    all.add({ node: "n2", answers: answersOf(2) });
    all.add({ node: "n3", answers: { next: () => Promise.reject(new Error("its link has ended")) } });

    const answers = await allOf(all.answers(new AbortController().signal));

    expect(answers.filter((answer) => "problem" in answer && answer.problem.node === undefined)).toHaveLength(5);
    expect(answers).toContainEqual({ problem: { node: "n3", message: "its link has ended" } });
  });

  test("goes on with a stream that is added when all have ended, until it is stopped", async () => {
    const all = new AsTheyCome();
    const ending = new AbortController();
    all.add({ node: "n1", answers: answersOf(1, "first") });
    const messages: string[] = [];
    for await (const answer of all.answers(ending.signal, "goes on")) {
      if (!("problem" in answer)) continue;
      messages.push(answer.problem.message);
      if (messages.length === 1) setTimeout(() => all.add({ node: "n2", answers: answersOf(1, "second") }), 5);
      else setTimeout(() => ending.abort(), 5);
    }

    expect(messages).toEqual(["first", "second"]);
  });

  test("keeps nothing of the answers that were read, however many nodes are quiet", async () => {
    const all = new AsTheyCome();
    for (let node = 0; node < 50; node++) all.add(quiet(`quiet-${node}`));
    all.add({ node: "busy", answers: { next: () => Promise.resolve({ done: false, value: ANSWER }) } });
    const ending = new AbortController();
    const sizeNow = () => {
      Bun.gc(true);
      return heapStats().heapSize;
    };
    let [count, before] = [0, 0];
    for await (const _answer of all.answers(ending.signal, "goes on")) {
      count += 1;
      if (count === 1_000) before = sizeNow();
      if (count === 6_000) ending.abort();
    }

    expect(sizeNow() - before).toBeLessThan(2_000_000);
  });
});
