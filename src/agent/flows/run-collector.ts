/**
 * One collector of flows, from its start to its end.
 *
 *   told-facts.ts ── take(): one message after another ── stdin ──▶ collector
 *                 ◀── questions, numbers in use, metrics ─ stdout ──
 *
 * The agent never waits for it: one that does not read, or says nothing any more, is killed, and another one is started.
 */
import * as v from "valibot";
import { fromCollectorSchema } from "../../flows/collector-messages.ts";
import { type LineRules, linesOf } from "../../lines.ts";
import { parseJson } from "../../parse-json.ts";
import { aborted } from "../../timers.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";
import type { CollectorProcess } from "./collector-process.ts";
import type { FlowsOfNode } from "./flows-of-node.ts";
import { ToldFacts } from "./told-facts.ts";

export interface RunMeans {
  readonly startCollector: () => CollectorProcess;
  readonly flows: FlowsOfNode;
  /** What was reported already is not reported again. */
  readonly report: (message: string) => void;
}

/** Afterwards it is killed. */
const END_MILLISECONDS = 5_000;
/** A collector that takes nothing for so long, or says nothing, hangs. It says something every second. */
const SILENCE_MILLISECONDS = 30_000;
/** Between two messages: a flood of questions costs the agent a small share of its time. */
const PAUSE_MILLISECONDS = 10;
const TICK_MILLISECONDS = 1_000;
const LINE_RULES: LineRules = {
  unended: "left out",
  most: { length: 16 * 1024 * 1024, failure: () => new Error("it wrote a line that is too long") },
};
const LONGEST_KEY = 100;

/** Until the signal is aborted. Rejects if the collector has ended before. */
export async function runCollector(followed: FollowedNetwork, means: RunMeans, signal: AbortSignal): Promise<void> {
  const ending = new AbortController();
  const conversation = new Conversation(followed, means);
  const loops = conversation.loops(AbortSignal.any([signal, ending.signal]));
  try {
    await Promise.race([Promise.all(loops), aborted(signal)]);
  } finally {
    ending.abort();
    await conversation.end();
    await Promise.allSettled(loops);
  }
}

class Conversation {
  private readonly process: CollectorProcess;
  private readonly facts: ToldFacts;
  private readonly ready = Promise.withResolvers<void>();
  private news = Promise.withResolvers<void>();
  private heardAt: number;

  constructor(
    private readonly followed: FollowedNetwork,
    private readonly means: RunMeans,
  ) {
    this.facts = new ToldFacts(followed, { ...means, changed: () => this.news.resolve() });
    this.heardAt = followed.means.clock.elapsed();
    this.process = means.startCollector();
    means.flows.starts += 1;
  }

  /** Each ends when the signal is aborted; one that rejects ends this collector. */
  loops(stop: AbortSignal): readonly Promise<void>[] {
    return [this.untilEnded(stop), this.listen(), this.tell(stop), this.tick(stop), ...this.facts.loops(stop)];
  }

  /** Gently at first: it writes what it has not written yet. */
  async end(): Promise<void> {
    const ended = new AbortController();
    void this.process.ended.then(() => ended.abort());
    this.process.stop("gently");
    await this.followed.means.clock.wait(END_MILLISECONDS, ended.signal);
    this.process.stop("hard");
    await this.process.ended;
    this.means.flows.facts = undefined;
  }

  private async untilEnded(stop: AbortSignal): Promise<void> {
    const how = await Promise.race([this.process.ended, aborted(stop)]);
    if (how !== undefined && !stop.aborted) throw new Error(how);
  }

  private async listen(): Promise<void> {
    for await (const line of linesOf(this.process.output, LINE_RULES)) this.hear(line);
    // How it ended is said elsewhere.
    await this.process.ended;
  }

  private hear(line: string): void {
    const read = v.safeParse(fromCollectorSchema, jsonOrNothing(line));
    if (!read.success)
      throw new Error(`it wrote ${JSON.stringify(line.slice(0, LONGEST_KEY))}, which is not a message`);
    this.heardAt = this.followed.means.clock.elapsed();
    const message = read.output;
    switch (message.kind) {
      case "ready":
        this.ready.resolve();
        break;
      case "who":
        for (const key of message.keys) if (key.length <= LONGEST_KEY) this.facts.answer(key);
        break;
      case "forget":
        for (const key of message.keys) this.facts.forget(key);
        break;
      case "numbers in use":
        this.facts.noteUse(message.since, message.numbers);
        break;
      case "facts":
        this.means.flows.facts = { losses: message.losses, metrics: message.metrics };
        break;
    }
  }

  private async tell(stop: AbortSignal): Promise<void> {
    await Promise.race([Promise.all([this.ready.promise, this.facts.known]), aborted(stop)]);
    // Not a race of each wait with the end: a promise that stays open remembers all of them.
    stop.addEventListener("abort", () => this.news.resolve(), { once: true });
    while (!stop.aborted) {
      const message = this.facts.take();
      if (message === undefined) {
        this.news = Promise.withResolvers<void>();
        await this.news.promise;
        continue;
      }
      await this.write(`${JSON.stringify(message)}\n`, stop);
      await this.followed.means.clock.wait(PAUSE_MILLISECONDS, stop);
    }
  }

  private async write(text: string, stop: AbortSignal): Promise<void> {
    const written = new AbortController();
    // How one has ended is said elsewhere.
    const writing = this.process
      .write(text)
      .catch(() => aborted(stop))
      .finally(() => written.abort());
    const until = AbortSignal.any([stop, written.signal]);
    await Promise.race([writing, this.followed.means.clock.wait(SILENCE_MILLISECONDS, until)]);
    if (!until.aborted) throw new Error(`it has read nothing for ${SILENCE_MILLISECONDS / 1_000} s`);
  }

  private async tick(stop: AbortSignal): Promise<void> {
    const { elapsed, wait } = this.followed.means.clock;
    while (!stop.aborted) {
      await wait(TICK_MILLISECONDS, stop);
      if (stop.aborted) return;
      this.facts.tick();
      this.means.flows.unansweredNames = this.facts.unanswered;
      if (elapsed() - this.heardAt > SILENCE_MILLISECONDS)
        throw new Error(`it has said nothing for ${SILENCE_MILLISECONDS / 1_000} s`);
    }
  }
}

function jsonOrNothing(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    return undefined;
  }
}
