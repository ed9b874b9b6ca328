import { describe, expect, test } from "bun:test";
import type { FlowAnswer, FlowQuestion } from "../../flows/flow-answer.ts";
import { type FlowQuery, matcherOf } from "../../flows/flow-query.ts";
import type { FlowEnd, FlowRecord } from "../../flows/flow-record.ts";
import { readTarget } from "../../flows/flow-request.ts";
import { ClusterFlows, type Reader } from "./cluster-flows.ts";

function podOf(namespace: string, name: string): FlowEnd {
  return { kind: "pod", address: `addr-${name}`, port: 80, namespace, name, node: "n1" };
}

function flowOf(node: string, id: string, start: number, namespace: string): FlowRecord {
  return {
    ...{ id, node, family: 4, protocol: 6, direction: "both", verdict: "allowed", state: "ended" },
    ...{ source: podOf(namespace, `client-${id}`), destination: podOf(namespace, "server"), start, end: start },
    ...{ decisions: [], sent: { packets: 1, bytes: 60 }, received: { packets: 0, bytes: 0 } },
  };
}

const LOSSES = {
  ...{ kernelOverruns: 0, rulesUnknown: 0, overLimit: 0, overCapacity: 0, deniedSuppressed: 0, namesUnknown: 0 },
  ...{ notStored: 0, notLogged: 0, withoutCollector: 0 },
};

/** A node with these flows, that counts what it sends. */
class TestNode {
  readonly asked: FlowQuestion[] = [];
  sent = 0;
  /** It says nothing after so many flows, until nobody wants more. */
  stopsAfter = Number.POSITIVE_INFINITY;

  constructor(
    readonly node: string,
    readonly flows: readonly FlowRecord[],
  ) {}

  async *ask(target: string, { signal }: { readonly signal: AbortSignal }): AsyncIterable<FlowAnswer> {
    const question = readTarget(target);
    if (question === undefined) throw new Error(target);
    this.asked.push(question);
    if (question.kind === "explanation") {
      // As a node that claims the flows of others does.
      const flow = this.flows.find(({ id }) => id === question.id || id === "any");
      if (flow !== undefined) yield { explanation: { flow, missing: [] } };
      return;
    }
    const matching = this.flows.filter(matcherOf(question.query));
    const { last } = question.query;
    for (const flow of last === undefined ? matching : last === 0 ? [] : matching.slice(-last)) {
      this.sent += 1;
      if (this.sent > this.stopsAfter) await untilAborted(signal);
      if (signal.aborted) return;
      yield { flow };
    }
    yield { losses: { node: this.node, ...LOSSES } };
    if (question.kind === "flows" && question.follow) await untilAborted(signal);
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  if (signal.aborted) resolve();
  await promise;
}

/** May list the pods of "red" alone. */
const OF_RED: Reader = {
  seesEverything: () => false,
  seesNodes: () => false,
  sightFor: async (namespaces) => ({
    ...{ everyPod: false, nodes: false, podsOf: new Set(namespaces.filter((name) => name === "red")) },
  }),
  mayListPolicies: async () => true,
};
const OF_ALL: Reader = {
  ...{ seesEverything: () => true, seesNodes: () => true, mayListPolicies: async () => true },
  sightFor: async () => ({ everyPod: true, nodes: true, podsOf: new Set<string>() }),
};

async function ask(
  nodes: readonly TestNode[],
  question: FlowQuestion,
  {
    reader = OF_RED,
    signal = new AbortController().signal,
  }: { readonly reader?: Reader; readonly signal?: AbortSignal } = {},
): Promise<readonly FlowAnswer[]> {
  const flows = new ClusterFlows({
    links: { all: nodes as never, onLink: () => ({ [Symbol.dispose]: () => {} }) },
    expectedNodes: async () => nodes.map(({ node }) => node),
    now: () => 0,
    patience: 60_000,
  });
  const answers: FlowAnswer[] = [];
  for await (const answer of flows.answer(question, reader, signal)) answers.push(answer);
  return answers;
}

function flowsAsked(query: FlowQuery): FlowQuestion {
  return { kind: "flows", query, follow: false };
}

function idsIn(answers: readonly FlowAnswer[]): readonly string[] {
  return answers.flatMap((answer) => ("flow" in answer ? [answer.flow.id] : []));
}

function messagesIn(answers: readonly FlowAnswer[]): readonly string[] {
  return answers.flatMap((answer) => ("problem" in answer ? [answer.problem.message] : []));
}

/** The flows of "red" are among many others. */
function history(node: string, count: number, isRed: (index: number) => boolean): TestNode {
  const flows = Array.from({ length: count }, (_, index) =>
    flowOf(node, `${node}x${index}`, index, isRed(index) ? "red" : "blue"),
  );
  return new TestNode(node, flows);
}

describe("the last flows of a reader who does not see everything", () => {
  test("are the newest ones, and nodes do not send their whole history for them", async () => {
    const nodes = [
      history("n1", 50_000, (index) => index % 10 === 0),
      history("n2", 50_000, (index) => index % 10 === 5),
    ];
    const answers = await ask(nodes, flowsAsked({ last: 4 }));

    expect(idsIn(answers)).toEqual(
      ["n2x49985", "n1x49980", "n2x49995", "n1x49990"].toSorted(
        (left, right) => Number(left.slice(3)) - Number(right.slice(3)),
      ),
    );
    expect(messagesIn(answers)).toEqual([]);
    for (const { sent } of nodes) expect(sent).toBeLessThan(300);
  });

  test("are looked for among more if they are not among the newest ones, to a limit that is told", async () => {
    const near = history("n1", 5_000, (index) => index < 4_000 && index % 100 === 0);
    expect(idsIn(await ask([near], flowsAsked({ last: 3 })))).toEqual(["n1x3700", "n1x3800", "n1x3900"]);
    const far = history("n1", 50_000, (index) => index < 100);
    const answers = await ask([far], flowsAsked({ last: 3 }));

    expect(idsIn(answers)).toEqual([]);
    expect(messagesIn(answers)).toEqual([expect.stringContaining("only the newest 10000 flows of each node")]);
    expect(far.sent).toBeLessThan(13_000);
    // All that the node has was looked at.
    expect(messagesIn(await ask([history("n1", 2_000, () => false)], flowsAsked({ last: 3 })))).toEqual([]);
  });

  test("are filtered by names after hiding; nodes are told only what tells nothing", async () => {
    const node = history("n1", 1_000, (index) => index % 2 === 0);
    const query = {
      last: 2,
      pod: "blue/client-n1x999",
      from: "node/n1",
      to: "10.0.0.0/8",
      node: "n1",
      label: "a",
      policy: "p",
    };
    expect(idsIn(await ask([node], flowsAsked(query)))).toEqual([]);
    for (const { query: asked } of node.asked.map((each) => each as FlowQuestion & { kind: "flows" }))
      expect(asked).toEqual({ last: expect.any(Number), to: "10.0.0.0/8" });
    node.asked.length = 0;
    await ask([node], flowsAsked({ last: 2, namespace: "blue" }));
    expect(node.asked[0]).toMatchObject({ query: { last: 256 } });
    expect(JSON.stringify(node.asked)).not.toContain("blue");
    expect(idsIn(await ask([node], flowsAsked({ last: 2, namespace: "red" })))).toEqual(["n1x996", "n1x998"]);
    expect(node.asked.at(-1)).toMatchObject({ query: { namespace: "red" } });
  });

  test("come before what is new", async () => {
    const node = history("n1", 1_000, (index) => index % 2 === 0);
    const signal = AbortSignal.timeout(300);
    const answers = await ask([node], { kind: "flows", query: { last: 2 }, follow: true }, { signal });

    expect(idsIn(answers)).toEqual(["n1x996", "n1x998"]);
    expect(node.asked.map((each) => each.kind === "flows" && [each.follow, each.query.last])).toEqual([
      [true, 0],
      [false, 256],
    ]);
  });
});

test.each([
  ["everything", OF_ALL],
  ["one namespace", OF_RED],
])("are none if a node takes too long, for a reader of %s: that is said instead", async (_title, reader) => {
  const node = history("n1", 100, () => true);
  node.stopsAfter = 50;
  const answers = await ask([node], flowsAsked({ last: 60 }), { reader, signal: AbortSignal.timeout(200) });

  expect(idsIn(answers)).toEqual([]);
  expect(messagesIn(answers)).toEqual(["the answer is not complete: it took too long"]);
});

test("the name of a node tells nobody that it exists who may not list nodes", async () => {
  const nodes = () => [history("n1", 1, () => true), history("n2", 1, () => true)];
  const [existing, other] = [
    await ask(nodes(), flowsAsked({ node: "n2" })),
    await ask(nodes(), flowsAsked({ node: "n3" })),
  ];

  expect(existing).toEqual(other);
  const asked = nodes();
  await ask(asked, flowsAsked({ node: "n2" }), { reader: OF_ALL });
  expect(asked.map((node) => node.asked.length)).toEqual([0, 1]);
});

describe("an explanation", () => {
  const question: FlowQuestion = { kind: "explanation", id: "n1x0" };
  const explained = (answers: readonly FlowAnswer[]) =>
    answers.flatMap((answer) => ("explanation" in answer ? [answer.explanation.flow.node] : []));

  test("is that of the flow that was asked for", async () => {
    const liar = new TestNode("n0", [flowOf("n0", "any", 0, "red")]);
    expect(explained(await ask([liar, history("n1", 1, () => true)], question))).toEqual(["n1"]);
  });

  test("is not given if several nodes claim the flow", async () => {
    const liar = new TestNode("n0", [flowOf("n0", "n1x0", 0, "red")]);
    const nodes = [liar, history("n1", 1, () => true)];
    const answers = await ask(nodes, question, { reader: OF_ALL });
    expect(explained(answers)).toEqual([]);
    expect(messagesIn(answers)).toEqual([expect.stringMatching(/several nodes .*: n0, n1$/)]);
    expect(messagesIn(await ask(nodes, question))).toEqual([expect.not.stringContaining("n0")]);
  });
});
