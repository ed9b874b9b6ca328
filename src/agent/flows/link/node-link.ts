/**
 * The links of the collector to the controllers: a WebSocket over TLS to each replica, over which they ask for the flows of this
 * node (src/flows/link-messages.ts). The node opens them, so none of its ports is open.
 *
 *   addresses, authority, token ──> one link for each address ──> question ──> FlowSource ──> lines, as many as were asked for
 *
 * A link that ends is opened again, after a pause that grows.
 */
import type { FlowAnswer, FlowSource } from "../../../flows/flow-answer.ts";
import { readTarget } from "../../../flows/flow-request.ts";
import {
  type FromNode,
  LINES_PER_MESSAGE,
  LINK_PATH,
  type LinkAccess,
  LONGEST_LINE,
  LONGEST_MESSAGE,
  toNodeSchema,
} from "../../../flows/link-messages.ts";
import { decodeShape } from "../../../model/shape.ts";
import { parseJson } from "../../../parse-json.ts";

export interface NodeLinkOptions {
  readonly source: FlowSource;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  /** From 0 up to 1. */
  readonly random: () => number;
}

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;
const PING_MILLISECONDS = 20_000;
const MOST_QUESTIONS = 64;
/** Lines that come within this time are sent together. */
const GATHER_MILLISECONDS = 10;
/** Well below what ends the link: the last line of a batch may be a long one too. */
const LONGEST_BATCH = LONGEST_MESSAGE / 8;

export class ControllerLinks {
  private readonly links = new Map<string, ControllerLink>();

  constructor(private readonly options: NodeLinkOptions) {}

  /** From now on to these controllers; `undefined`: to none. */
  use(access: LinkAccess | undefined): void {
    const wanted = new Set(access?.addresses);
    for (const [address, link] of this.links) {
      if (wanted.has(address)) continue;
      link.close();
      this.links.delete(address);
    }
    if (access === undefined) return;
    for (const address of wanted) {
      const link = this.links.get(address) ?? new ControllerLink(address, this.options);
      this.links.set(address, link);
      link.use(access);
    }
  }

  close(): void {
    this.use(undefined);
  }
}

class ControllerLink {
  private access: LinkAccess | undefined;
  private socket: WebSocket | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  private pinging: ReturnType<typeof setInterval> | undefined;
  private pause = FIRST_PAUSE;
  private reported = "";

  constructor(
    private readonly address: string,
    private readonly options: NodeLinkOptions,
  ) {}

  /** An open link goes on with the token that it was opened with. */
  use(access: LinkAccess): void {
    this.access = access;
    if (this.socket === undefined && this.again === undefined) this.open();
  }

  close(): void {
    this.access = undefined;
    clearTimeout(this.again);
    this.again = undefined;
    this.socket?.close(1000);
  }

  private open(): void {
    const { access, options } = this;
    this.again = undefined;
    if (access === undefined) return;
    const socket = new WebSocket(`wss://${this.address}${LINK_PATH}`, {
      headers: { authorization: `Bearer ${access.token}` },
      tls: { ca: access.authority, serverName: access.serverName, rejectUnauthorized: true },
    } as unknown as string[]);
    this.socket = socket;
    const questions = new Questions(options.source, (message) => socket.send(JSON.stringify(message)));
    let problem = "the connection ended";
    socket.addEventListener("open", () => {
      this.pause = FIRST_PAUSE;
      this.reported = "";
      options.log(`The controllers at ${this.address} may ask for flows`, "INFO");
      this.pinging = setInterval(() => pingOrEnd(socket, alive), PING_MILLISECONDS);
    });
    const alive = { isHeard: true };
    socket.addEventListener("pong" as "message", () => {
      alive.isHeard = true;
    });
    socket.addEventListener("message", ({ data }) => {
      alive.isHeard = true;
      questions.receive(String(data));
    });
    socket.addEventListener("error", (event) => {
      if ("message" in event && typeof event.message === "string") problem = event.message;
    });
    socket.addEventListener("close", ({ reason }) => {
      clearInterval(this.pinging);
      questions.close();
      this.socket = undefined;
      this.openAgain(reason === "" ? problem : reason);
    });
  }

  private openAgain(why: string): void {
    if (this.access === undefined) return;
    if (why !== this.reported)
      this.options.log(`No link to the controllers at ${this.address}: ${why}; trying again`, "WARNING");
    this.reported = why;
    // Half of it by chance: the nodes of a cluster do not all come at the same time.
    const pause = this.pause * (0.5 + this.options.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    this.again = setTimeout(() => this.open(), pause);
  }
}

/** Bun's WebSocket has more than the standard one. */
type PingedSocket = WebSocket & { ping(): void; terminate(): void };

function pingOrEnd(socket: WebSocket, alive: { isHeard: boolean }): void {
  const pinged = socket as PingedSocket;
  const isDead = !alive.isHeard;
  alive.isHeard = false;
  if (isDead) pinged.terminate();
  else pinged.ping();
}

interface Question {
  readonly ending: AbortController;
  allowed: number;
  more: PromiseWithResolvers<void>;
}

/** What is asked over one link. */
export class Questions {
  private readonly open = new Map<number, Question>();

  constructor(
    private readonly source: FlowSource,
    private readonly send: (message: FromNode) => void,
  ) {}

  receive(text: string): void {
    const decoded = decodeShape(toNodeSchema, parseJson(text));
    // Of a release with other messages.
    if (!decoded.ok) return;
    const message = decoded.value;
    const { number } = message;
    const question = this.open.get(number);
    switch (message.kind) {
      case "ask":
        void this.answer(number, message.target, message.lines);
        break;
      case "more":
        if (question === undefined) break;
        question.allowed += message.lines;
        question.more.resolve();
        question.more = Promise.withResolvers();
        break;
      case "cancel":
        this.end(number);
        break;
    }
  }

  close(): void {
    for (const number of this.open.keys()) this.end(number);
  }

  private end(number: number): void {
    const question = this.open.get(number);
    this.open.delete(number);
    question?.ending.abort();
    question?.more.resolve();
  }

  private async answer(number: number, target: string, lines: number): Promise<void> {
    if (this.open.has(number) || this.open.size >= MOST_QUESTIONS)
      return this.send({ kind: "failed", number, message: "too many questions at the same time" });
    const question: Question = { ending: new AbortController(), allowed: lines, more: Promise.withResolvers() };
    this.open.set(number, question);
    const { signal } = question.ending;
    try {
      const asked = readTarget(target);
      if (asked === undefined) throw new Error("the agent of this node does not know this question");
      const batch = new Batch((answers) => this.send({ kind: "answers", number, answers }));
      for await (const answer of this.source.answer(asked, signal)) {
        while (question.allowed === 0 && !signal.aborted) {
          batch.flush();
          await question.more.promise;
        }
        if (signal.aborted) return;
        question.allowed -= 1;
        batch.add(answer);
      }
      if (signal.aborted) return;
      batch.flush();
      this.send({ kind: "end", number });
    } catch (failure) {
      if (signal.aborted) return;
      this.send({ kind: "failed", number, message: failure instanceof Error ? failure.message : String(failure) });
    } finally {
      this.end(number);
    }
  }
}

class Batch {
  private answers: FlowAnswer[] = [];
  private characters = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly send: (answers: FlowAnswer[]) => void) {}

  add(given: FlowAnswer): void {
    const { length } = JSON.stringify(given);
    const isTooLong = length > ("explanation" in given ? LONGEST_BATCH : LONGEST_LINE);
    this.answers.push(isTooLong ? { problem: { message: `a line with ${length} characters is too long` } } : given);
    this.characters += isTooLong ? 0 : length;
    if (this.answers.length >= LINES_PER_MESSAGE || this.characters >= LONGEST_BATCH) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), GATHER_MILLISECONDS);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.answers.length > 0) this.send(this.answers);
    this.answers = [];
    this.characters = 0;
  }
}
