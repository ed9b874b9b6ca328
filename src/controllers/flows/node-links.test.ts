import { describe, expect, test } from "bun:test";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import type { FromNode } from "../../flows/link-messages.ts";
import { NodeLink } from "./node-links.ts";

const NEVER = { verify: () => {}, pause: () => 3_600_000 };

function openLink(again = NEVER) {
  const sent: { readonly kind: string; readonly number: number }[] = [];
  const socket = { send: (text: string) => sent.push(JSON.parse(text)), close: () => {} };
  const link = new NodeLink("n1", socket as never, again);
  const receive = (message: FromNode) => link.receive(JSON.stringify(message));
  return { link, receive, sent, [Symbol.dispose]: () => link.end("over") };
}

function line(characters: number): FlowAnswer {
  return { problem: { message: "x".repeat(characters) } };
}

describe("NodeLink", () => {
  test("has its token verified again after pauses of different length, until it ends", async () => {
    let [pause, verified] = [1, 0];
    const opened = openLink({ verify: () => verified++, pause: () => (pause += 3) });
    while (verified < 4) await Bun.sleep(2);
    opened[Symbol.dispose]();
    await Bun.sleep(40);

    expect([verified, pause]).toEqual([4, 16]);
  });

  test("closes the link of a node that sends a line longer than any", () => {
    using opened = openLink();
    const { receive } = opened;

    expect(() => receive({ kind: "answers", number: 1, answers: [line(60_000), line(10_000)] })).not.toThrow();
    expect(() => receive({ kind: "answers", number: 1, answers: [line(66_000)] })).toThrow(/at most 65536/);
  });

  test("keeps a limited number of characters for a question that nobody reads, and says so", async () => {
    using opened = openLink();
    const { link, receive, sent } = opened;
    const signal = new AbortController().signal;
    const answers = link.ask("/flows", { lines: 1_024, signal })[Symbol.asyncIterator]();
    const first = answers.next();
    receive({ kind: "answers", number: 1, answers: [line(1)] });
    expect((await first).done).toBe(false);
    for (let index = 0; index < 200; index++) receive({ kind: "answers", number: 1, answers: [line(60_000)] });

    expect(await answers.next().catch(String)).toContain("too long to keep");
    expect(sent.at(-1)).toEqual({ kind: "cancel", number: 1 });
  });

  test("counts what was read no more, however much it is", async () => {
    using opened = openLink();
    const { link, receive } = opened;
    const answers = link.ask("/flows", { lines: 100, signal: new AbortController().signal })[Symbol.asyncIterator]();
    for (let index = 0; index < 1_000; index++) {
      const next = answers.next();
      receive({ kind: "answers", number: 1, answers: [line(60_000)] });
      expect((await next).done).toBe(false);
    }
    const last = answers.next();
    receive({ kind: "end", number: 1 });

    expect((await last).done).toBe(true);
  });
});
