import { describe, expect, test } from "bun:test";
import type { FlowAnswer, FlowSource } from "../../../flows/flow-answer.ts";
import type { FromNode, ToNode } from "../../../flows/link-messages.ts";
import { addressesIn } from "./link-access.ts";
import { Questions } from "./node-link.ts";

/** Says so many lines, then waits until nobody wants more. */
class Lines implements FlowSource {
  said = 0;
  isStopped = false;

  constructor(
    private readonly count: number,
    private readonly goesOn: boolean,
  ) {}

  async *answer(_question: unknown, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    try {
      for (; this.said < this.count; this.said++) yield { problem: { message: `${this.said}` } };
      if (!this.goesOn) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => resolve());
      await promise;
    } finally {
      this.isStopped = true;
    }
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 500 && !condition(); attempt++) await Bun.sleep(2);
  expect(condition()).toBe(true);
}

function opened(source: FlowSource) {
  const sent: FromNode[] = [];
  const questions = new Questions(source, (message) => sent.push(message));
  const receive = (message: ToNode) => questions.receive(JSON.stringify(message));
  const lines = () => sent.reduce((sum, each) => sum + (each.kind === "answers" ? each.answers.length : 0), 0);
  return { questions, sent, receive, lines };
}

describe("Questions", () => {
  test("sends as many lines as were asked for, and the rest when more are asked for", async () => {
    const { receive, sent, lines } = opened(new Lines(250, false));
    receive({ kind: "ask", number: 1, target: "/flows", lines: 100 });
    await until(() => lines() === 100);
    await Bun.sleep(30);
    expect(lines()).toBe(100);

    receive({ kind: "more", number: 1, lines: 50 });
    await until(() => lines() === 150);
    receive({ kind: "more", number: 1, lines: 1_000 });
    await until(() => sent.some(({ kind }) => kind === "end"));
    expect(lines()).toBe(250);
  });

  test("stops what is cancelled, and everything when the link ends", async () => {
    const [first, second] = [new Lines(1, true), new Lines(1, true)];
    const one = opened(first);
    one.receive({ kind: "ask", number: 1, target: "/flows?follow=true", lines: 10 });
    await until(() => one.lines() === 1);
    one.receive({ kind: "cancel", number: 1 });
    await until(() => first.isStopped);
    const other = opened(second);
    other.receive({ kind: "ask", number: 1, target: "/flows?follow=true", lines: 10 });
    await until(() => other.lines() === 1);
    other.questions.close();
    await until(() => second.isStopped);

    expect(one.sent.concat(other.sent).map(({ kind }) => kind)).toEqual(["answers", "answers"]);
  });

  test("says that a line is too long, in place of it", async () => {
    const [long, short] = ["x".repeat(70_000), "short"].map((message) => ({ problem: { message } }));
    async function* answer(): AsyncIterable<FlowAnswer> {
      for (const each of [long, short]) if (each !== undefined) yield each;
    }
    const { receive, sent } = opened({ answer });
    receive({ kind: "ask", number: 1, target: "/flows", lines: 10 });
    await until(() => sent.some(({ kind }) => kind === "end"));

    expect(sent[0]).toEqual({
      ...{ kind: "answers", number: 1 },
      answers: [
        { problem: { message: expect.stringMatching(/^a line with 70\d\d\d characters is too long$/) } },
        short,
      ],
    } as never);
  });

  test("says why a question cannot be answered", async () => {
    const { receive, sent } = opened(new Lines(1, false));
    receive({ kind: "ask", number: 1, target: "/flows?colour=red", lines: 10 });
    receive({ kind: "ask", number: 2, target: "/metrics", lines: 10 });
    await until(() => sent.length === 2);

    expect(sent).toEqual([
      { kind: "failed", number: 1, message: expect.stringContaining("colour") },
      { kind: "failed", number: 2, message: expect.stringContaining("does not know") },
    ]);
  });

  test("takes only so many questions at the same time", async () => {
    const { receive, sent, questions } = opened(new Lines(0, true));
    for (let number = 1; number <= 65; number++)
      receive({ kind: "ask", number, target: "/flows?follow=true", lines: 1 });
    await until(() => sent.length > 0);
    questions.close();

    expect(sent).toEqual([{ kind: "failed", number: 65, message: expect.stringContaining("too many") }]);
  });
});

test("addressesIn() has each replica that is ready once, at the port for links", () => {
  const ports = [
    { name: "https", port: 9097 },
    { name: "links", port: 9098 },
  ];
  expect(
    addressesIn([
      {
        ports,
        endpoints: [
          { addresses: ["10.0.0.2"], conditions: { ready: true } },
          { addresses: ["10.0.0.1"] },
          { addresses: ["10.0.0.3"], conditions: { ready: false } },
          { addresses: ["10.0.0.2"], conditions: { ready: true } },
        ],
      },
      { ports, endpoints: [{ addresses: ["fd00::1"] }] },
      { ports: [{ name: "https", port: 9097 }], endpoints: [{ addresses: ["10.0.0.9"] }] },
    ]),
  ).toEqual(["10.0.0.1:9098", "10.0.0.2:9098", "[fd00::1]:9098"]);
});
