/**
 * The links that the collectors of the nodes have opened to this replica, and the questions that are asked over them.
 *
 *   collector ── WebSocket over TLS, its token ──> verify-node.ts ──> NodeLink of this node, in place of an earlier one
 *
 * What a node says is about itself: the name of the node in every answer is that of its token.
 */
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import {
  type FromNode,
  fromNodeSchema,
  LINK_PATH,
  LONGEST_LINE,
  LONGEST_MESSAGE,
  type ToNode,
} from "../../flows/link-messages.ts";
import { decodeShape } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { KeyPair } from "../../tls/x509.ts";
import { TokenAttempts } from "../../web/token-attempts.ts";
import type { VerifiedNode } from "./verify-node.ts";

export interface NodeLinksOptions {
  readonly verify: (token: string) => Promise<VerifiedNode>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

interface LinkData {
  readonly node: string;
  readonly token: string;
  link?: NodeLink;
}

type Socket = Bun.ServerWebSocket<LinkData>;

/** A dead peer is noticed after this time. */
const IDLE_SECONDS = 60;
const VERIFY_AGAIN_MILLISECONDS = 5 * 60 * 1_000;
/** Nodes that try to open a link at the same time, and a caller without a token. */
const MOST_VERIFIED_AT_ONCE = 64;

export class NodeLinks {
  private readonly links = new Map<string, NodeLink>();
  private readonly listeners = new Set<(link: NodeLink) => void>();
  private server: Bun.Server<LinkData> | undefined;
  private verifying = 0;
  private readonly attempts: TokenAttempts<VerifiedNode>;

  constructor(private readonly options: NodeLinksOptions) {
    this.attempts = new TokenAttempts(options.verify, () => performance.now());
  }

  get nodes(): readonly string[] {
    return [...this.links.keys()];
  }

  get all(): readonly NodeLink[] {
    return [...this.links.values()];
  }

  /** Called with each link that is opened from now on. */
  onLink(listener: (link: NodeLink) => void): Disposable {
    this.listeners.add(listener);
    return { [Symbol.dispose]: () => this.listeners.delete(listener) };
  }

  /** Listens from now on, or with another certificate: links that are open stay. */
  listen(hostname: string, port: number, { certificate, key }: KeyPair): void {
    // Ends when its connections have ended.
    void this.server?.stop();
    const { options } = this;
    this.server = Bun.serve<LinkData>({
      ...{ hostname, port, tls: { cert: certificate, key } },
      fetch: (request, server) => this.open(request, server),
      websocket: {
        ...{ idleTimeout: IDLE_SECONDS, maxPayloadLength: LONGEST_MESSAGE, sendPings: true },
        open: (socket) => this.add(socket),
        message: (socket, message) => {
          try {
            socket.data.link?.receive(message);
          } catch (failure) {
            options.log(`The link of node ${socket.data.node} is closed: ${reasonOf(failure)}`, "WARNING");
            socket.close(1002, "the message is not valid");
          }
        },
        close: ({ data: { node, link } }) => {
          link?.end("its link has ended");
          if (this.links.get(node) === link) this.links.delete(node);
        },
      },
    });
  }

  async close(): Promise<void> {
    for (const link of this.links.values()) link.close(1001, "the controllers end");
    await this.server?.stop(true);
    this.server = undefined;
  }

  private async open(request: Request, server: Bun.Server<LinkData>): Promise<Response | undefined> {
    if (new URL(request.url).pathname !== LINK_PATH) return new Response("not found\n", { status: 404 });
    const token = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (token === undefined) return new Response("a token is needed\n", { status: 401 });
    if (this.verifying >= MOST_VERIFIED_AT_ONCE) return new Response("try again later\n", { status: 503 });
    this.verifying += 1;
    try {
      const address = server.requestIP(request)?.address ?? "";
      const verified = await this.attempts.verifyFrom(address, token);
      if (verified === undefined) return new Response("too many attempts; try again later\n", { status: 429 });
      if (verified.kind === "refused") return new Response(`${verified.why}\n`, { status: 401 });
      const { node } = verified;
      if (server.upgrade(request, { data: { node, token } })) return undefined;
      return new Response("a WebSocket is needed\n", { status: 400 });
    } catch (failure) {
      this.options.log(`Cannot verify the token of a node agent: ${reasonOf(failure)}`, "WARNING");
      return new Response("the token cannot be verified now\n", { status: 503 });
    } finally {
      this.verifying -= 1;
    }
  }

  private add(socket: Socket): void {
    const { node } = socket.data;
    const link = new NodeLink(node, socket, {
      verify: () => this.verifyAgain(socket),
      // Links that were opened together are not verified together.
      pause: () => VERIFY_AGAIN_MILLISECONDS * (0.5 + Math.random() / 2),
    });
    socket.data.link = link;
    this.links.get(node)?.close(1000, "the node has opened another link");
    this.links.set(node, link);
    for (const listener of this.listeners) listener(link);
  }

  private async verifyAgain(socket: Socket): Promise<void> {
    const verified = await this.options.verify(socket.data.token).catch(() => undefined);
    if (verified?.kind === "refused") socket.close(1008, verified.why);
  }
}

/** Characters of answers that nobody has read yet: of one question, and of all questions of a node together. */
const MOST_OF_QUESTION = 8 * 1024 * 1024;
const MOST_OF_NODE = 32 * 1024 * 1024;

interface VerifyAgain {
  readonly verify: () => void;
  /** Milliseconds until the next time. */
  readonly pause: () => number;
}

export interface AskOptions {
  /** How many lines may wait to be read. */
  readonly lines: number;
  readonly signal: AbortSignal;
}

export class NodeLink {
  private readonly questions = new Map<number, Question>();
  private verifying: ReturnType<typeof setTimeout> | undefined;
  private lastNumber = 0;
  private ended: string | undefined;
  private readonly waiting: Waiting = { characters: 0 };

  constructor(
    readonly node: string,
    private readonly socket: Socket,
    again: VerifyAgain,
  ) {
    this.verifyLater(again);
  }

  /** Ends when the node has said everything, or the signal is aborted. Throws if the node fails, or the link ends. */
  async *ask(target: string, { lines, signal }: AskOptions): AsyncIterable<FlowAnswer> {
    if (this.ended !== undefined) throw new Error(this.ended);
    const number = ++this.lastNumber;
    const question = new Question(lines, this.waiting);
    this.questions.set(number, question);
    const stop = () => question.end();
    signal.addEventListener("abort", stop);
    try {
      this.send({ kind: "ask", number, target, lines });
      let read = 0;
      for await (const answer of question.answers()) {
        yield answer;
        if (++read < lines / 2) continue;
        question.allow(read);
        this.send({ kind: "more", number, lines: read });
        read = 0;
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.questions.delete(number);
      question.forget();
      if (!question.isOver) this.send({ kind: "cancel", number });
    }
  }

  /** Throws if the message is not one that a collector sends. */
  receive(given: string | Uint8Array): void {
    const text = String(given);
    const decoded = decodeShape(fromNodeSchema, parseJson(text));
    if (!decoded.ok)
      throw new Error(`it sent ${decoded.problems.map(({ path, message }) => `${path}: ${message}`)[0]}`);
    const message: FromNode = decoded.value;
    // The rest of an answer that nobody wants any more.
    const question = this.questions.get(message.number);
    switch (message.kind) {
      case "answers":
        for (const answer of message.answers) requireShort(answer, text.length);
        question?.add({
          answers: message.answers.map((answer) => stamped(answer, this.node)),
          characters: text.length,
        });
        break;
      case "end":
        question?.end("over");
        break;
      case "failed":
        question?.fail(message.message);
        break;
    }
  }

  end(why: string): void {
    this.ended = why;
    clearTimeout(this.verifying);
    for (const question of this.questions.values()) question.fail(why);
  }

  close(code: number, why: string): void {
    this.end(why);
    this.socket.close(code, why);
  }

  private verifyLater(again: VerifyAgain): void {
    this.verifying = setTimeout(() => {
      again.verify();
      this.verifyLater(again);
    }, again.pause());
  }

  private send(message: ToNode): void {
    this.socket.send(JSON.stringify(message));
  }
}

/** Throws if one line is longer than any that a collector sends. */
function requireShort(answer: FlowAnswer, ofMessage: number): void {
  if (ofMessage <= LONGEST_LINE || "explanation" in answer) return;
  const { length } = JSON.stringify(answer);
  if (length > LONGEST_LINE)
    throw new Error(`it sent a line with ${length} characters; at most ${LONGEST_LINE} are read`);
}

/** Of all questions of one node. */
interface Waiting {
  characters: number;
}

/** What came in one message. */
interface Part {
  readonly answers: readonly FlowAnswer[];
  readonly characters: number;
}

class Question {
  /** It was answered completely, or the node failed: there is nothing to cancel. */
  isOver = false;
  private parts: Part[] = [];
  private characters = 0;
  private failure: Error | undefined;
  private hasEnded = false;
  private news = Promise.withResolvers<void>();

  constructor(
    private allowed: number,
    private readonly ofNode: Waiting,
  ) {}

  add(part: Part): void {
    this.allowed -= part.answers.length;
    if (this.allowed < 0) throw new Error("it sent more lines than it was asked for");
    if (this.hasEnded) return;
    this.count(part.characters);
    this.parts.push(part);
    if (this.characters > MOST_OF_QUESTION || this.ofNode.characters > MOST_OF_NODE) {
      this.forget();
      this.failure = new Error("its lines are too long to keep them until they are read");
      this.end();
    } else this.news.resolve();
  }

  allow(lines: number): void {
    this.allowed += lines;
  }

  end(isOver?: "over"): void {
    this.hasEnded = true;
    this.isOver ||= isOver === "over";
    this.news.resolve();
  }

  fail(why: string): void {
    this.failure ??= new Error(why);
    this.end("over");
  }

  /** Nobody reads the rest. */
  forget(): void {
    this.parts = [];
    this.count(-this.characters);
  }

  async *answers(): AsyncIterable<FlowAnswer> {
    for (;;) {
      const part = this.parts.shift();
      if (part !== undefined) {
        yield* part.answers;
        // Until here they are in memory, unless all was forgotten meanwhile.
        this.count(-Math.min(part.characters, this.characters));
        continue;
      }
      if (this.failure !== undefined) throw this.failure;
      if (this.hasEnded) return;
      await this.news.promise;
      this.news = Promise.withResolvers();
    }
  }

  private count(characters: number): void {
    this.characters += characters;
    this.ofNode.characters += characters;
  }
}

/** As said by this node, whatever it says. */
function stamped(answer: FlowAnswer, node: string): FlowAnswer {
  if ("flow" in answer) return { flow: { ...answer.flow, node } };
  if ("rollup" in answer) return { rollup: { ...answer.rollup, node } };
  if ("losses" in answer) return { losses: { ...answer.losses, node } };
  if ("problem" in answer) return { problem: { ...answer.problem, node } };
  const { explanation } = answer;
  return { explanation: { ...explanation, flow: { ...explanation.flow, node } } };
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
