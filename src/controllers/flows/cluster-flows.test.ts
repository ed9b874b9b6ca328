import { describe, expect, test } from "bun:test";
import { pollUntil } from "../../../test/support/poll.ts";
import type { FlowAnswer, FlowQuestion } from "../../flows/flow-answer.ts";
import { type FlowQuery, FlowQueryError, type Sight } from "../../flows/flow-query.ts";
import type { FlowEnd, FlowRecord } from "../../flows/flow-record.ts";
import { readTarget } from "../../flows/flow-request.ts";
import { visibleMatcher } from "../../flows/visible-flows.ts";
import { tokenBindingProblem } from "../../kube/server-version.ts";
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
    const matching = this.flows.filter(visibleMatcher(question));
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

const EVERY_POLICY = { mayListPolicies: async () => true, mayListClusterPolicies: async () => true };

function readerOf(namespaces: readonly string[]): Reader {
  const sight: Sight = { everyPod: false, nodes: false, podsOf: new Set(namespaces) };
  return {
    ...{ seesEverything: () => false, seesNodes: () => false, ...EVERY_POLICY },
    ...{ sightFor: async () => sight, wholeSight: async () => sight, onReview: NEVER_REVIEWED },
  };
}

const NEVER_REVIEWED = () => ({ [Symbol.dispose]: () => {} });
const OF_RED = readerOf(["red"]);
const OF_ALL: Reader = {
  ...{ seesEverything: () => true, seesNodes: () => true, ...EVERY_POLICY },
  sightFor: async () => ({ everyPod: true, nodes: true, podsOf: new Set<string>() }),
  wholeSight: async () => ({ everyPod: true, nodes: true, podsOf: new Set<string>() }),
  onReview: NEVER_REVIEWED,
};

async function ask(
  nodes: readonly TestNode[],
  question: FlowQuestion,
  {
    reader = OF_RED,
    signal = new AbortController().signal,
    noLinks,
  }: { readonly reader?: Reader; readonly signal?: AbortSignal; readonly noLinks?: string } = {},
): Promise<readonly FlowAnswer[]> {
  const flows = new ClusterFlows({
    links: { all: noLinks === undefined ? (nodes as never) : [], onLink: () => ({ [Symbol.dispose]: () => {} }) },
    expectedNodes: async () => ({
      nodes: nodes.map(({ node }) => node),
      ...(noLinks === undefined ? {} : { problem: noLinks }),
    }),
    now: () => 0,
    patience: 60_000,
  });
  const answers: FlowAnswer[] = [];
  for await (const answer of await flows.answer(question, reader, signal)) answers.push(answer);
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

describe("the flows of a reader who does not see everything", () => {
  test("are all that nodes send: the last ones, and those of a time", async () => {
    const nodes = () => [
      history("n1", 50_000, (index) => index % 10_000 === 0),
      history("n2", 50_000, (index) => index % 10_000 === 5_000),
    ];
    const [last, all] = [nodes(), nodes()];
    const byNumber = (ids: readonly string[]) =>
      ids.toSorted((one, two) => Number(one.slice(3)) - Number(two.slice(3)));

    expect(idsIn(await ask(last, flowsAsked({ last: 3 })))).toEqual(byNumber(["n2x35000", "n1x40000", "n2x45000"]));
    expect(last.map(({ sent }) => sent)).toEqual([3, 3]);
    const answers = await ask(all, flowsAsked({}));
    expect([idsIn(answers).length, messagesIn(answers)]).toEqual([10, []]);
    expect(all.map(({ sent }) => sent)).toEqual([5, 5]);
  });

  test("are filtered by what is shown of them, at the nodes too", async () => {
    const node = history("n1", 1_000, (index) => index % 2 === 0);
    const sight = { everyPod: false, nodes: false, podsOf: new Set(["red"]) };
    for (const [query, ids] of [
      [{ last: 2, pod: "blue/client-n1x999" }, []],
      [{ last: 2, namespace: "blue" }, []],
      [{ last: 2, node: "n1" }, ["n1x996", "n1x998"]],
      [{ last: 2, pod: "client-n1x99*" }, ["n1x996", "n1x998"]],
    ] as const) {
      node.sent = 0;
      expect(idsIn(await ask([node], flowsAsked(query)))).toEqual([...ids]);
      expect(node.asked.at(-1)).toEqual({ kind: "flows", query, sight, follow: false });
      expect(node.sent).toBe(ids.length);
    }
  });

  test("are hidden and filtered again, whatever a node sends", async () => {
    const node = history("n1", 10, (index) => index % 2 === 0);
    const everything = node.ask.bind(node);
    node.ask = (_, options) => everything("/flows", options);

    expect(idsIn(await ask([node], flowsAsked({})))).toEqual(["n1x0", "n1x2", "n1x4", "n1x6", "n1x8"]);
    expect(idsIn(await ask([node], flowsAsked({ pod: "client-n1x2" })))).toEqual(["n1x2"]);
  });

  test("come before what is new", async () => {
    const node = history("n1", 1_000, (index) => index % 2 === 0);
    const signal = AbortSignal.timeout(300);
    const answers = await ask([node], { kind: "flows", query: { last: 2 }, follow: true }, { signal });

    expect(idsIn(answers)).toEqual(["n1x996", "n1x998"]);
    expect(node.asked).toMatchObject([{ follow: true, query: { last: 2 } }]);
  });

  test("are asked for again when the reader may see more or less, and the answer ends when nobody knows", async () => {
    const node = history("n1", 10, (index) => index % 2 === 0);
    const review = new EventTarget();
    let reader: Reader | undefined = OF_RED;
    const reviewed: Reader = {
      ...OF_RED,
      wholeSight: async (namespace) => {
        if (reader === undefined) throw new Error("the API server does not say");
        return reader.wholeSight(namespace);
      },
      onReview: (listener) => {
        review.addEventListener("again", listener);
        return { [Symbol.dispose]: () => review.removeEventListener("again", listener) };
      },
    };
    const answering = ask([node], { kind: "flows", query: { last: 1 }, follow: true }, { reader: reviewed });
    const becomes = async (next: Reader | undefined, count: number) => {
      reader = next;
      review.dispatchEvent(new Event("again"));
      await pollUntil(() => node.asked.length === count, "the node to be asked");
    };
    await pollUntil(() => node.sent === 1, "the last flow of the past");
    await becomes(readerOf(["red", "blue"]), 2);
    await becomes(OF_RED, 3);
    await becomes(undefined, 3);

    expect(new Set(idsIn(await answering)).size).toBe(10);
    expect(node.asked.map((each) => each.kind === "flows" && [...(each.sight?.podsOf ?? [])])).toEqual([
      ["red"],
      ["blue", "red"],
      ["red"],
    ]);
    // Without the last ones of the past, and not from before the question on.
    expect(node.asked[1]).toMatchObject({ query: { since: 0 } });
    expect(node.asked[1]).not.toMatchObject({ query: { last: 1 } });
  });
});

test("sums by node are refused to those who may not list nodes", async () => {
  const asked = ask([history("n1", 1, () => true)], { kind: "rollups", query: { node: "n1" } });
  await expect(asked).rejects.toBeInstanceOf(FlowQueryError);
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

test("why no node can have a link is said once, to every reader", async () => {
  const nodes = [history("n1", 1, () => true), history("n2", 1, () => true)];
  const noLinks = tokenBindingProblem("v1.30.14") ?? "";
  expect(noLinks).toContain("v1.30.14");
  for (const reader of [OF_ALL, OF_RED])
    expect(messagesIn(await ask(nodes, flowsAsked({}), { reader, noLinks }))).toEqual([noLinks]);
  for (const version of ["v1.31.0", "v1.37.0+k3s1", "unknown", ""])
    expect(tokenBindingProblem(version)).toBeUndefined();
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
