/**
 * One connection of a sidecar: what it may do when.
 *
 *   greeting ── hello ──> idle ── update sent ──> busy ── drained and applied ──> idle ── …
 *
 * There is at most one update that the sidecar has not applied, whatever changes meanwhile: a sidecar that does not read
 * costs the memory of one update, until its time is over. Anything unexpected ends the connection.
 */
import type { Socket } from "bun";
import { LineBuffer } from "../protocol/line-buffer.ts";
import type { FromAgent, FromSidecar } from "../protocol/sidecar-state.ts";
import type { SidecarState } from "../state/sidecar-states.ts";
import { differenceOf, type SentState } from "../state/state-difference.ts";
import { encodeLine, readSidecarLine, replyToHello } from "./sidecar-lines.ts";

/** Why a connection was ended. */
export type Refusal = "other user" | "newer protocol" | "malformed" | "too slow" | "too many";

/** A connection of any protocol. */
export interface FedConnection {
  /** The release of the sidecar; `undefined` before it has said it. */
  readonly release: string | undefined;
  /** It has applied the first update, and decides about requests. */
  readonly reportsIn: boolean;
  readonly isIdle: boolean;
  /** Nothing was sent yet: the next update is the whole state. */
  readonly isNew: boolean;
  /** Only if it is idle. Returns whether there was anything to send. */
  update(state: SidecarState): boolean;
  receive(bytes: Uint8Array): void;
  /** The socket takes more. */
  drain(): void;
  /** Ends the connection if the sidecar has taken too long. */
  checkTime(): void;
  refuse(reason: Refusal): void;
  close(): void;
  /** The socket is closed. */
  ended(): void;
}

export interface ConnectionOptions {
  /** The release of this agent. */
  readonly version: string;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly refused: (reason: Refusal) => void;
  /** The sidecar has said which release it is. */
  readonly greeted: (connection: FedConnection) => void;
  /** The sidecar has applied everything that it was sent. */
  readonly applied: (connection: FedConnection) => void;
  /** What the sidecar cannot be told. */
  readonly report: (problem: string) => void;
}

const LONGEST_LINE = 64 * 1024;
const HELLO_MILLISECONDS = 5_000;
const APPLY_MILLISECONDS = 10_000;
const NOTHING = new Uint8Array(0);

export class SidecarConnection implements FedConnection {
  release: string | undefined;
  reportsIn = false;
  private phase: "greeting" | "idle" | "busy" | "closed" = "greeting";
  private sent: SentState | undefined;
  private unsent = NOTHING;
  private deadline: number;
  private readonly received = new LineBuffer(LONGEST_LINE);

  constructor(
    private readonly socket: Socket<unknown>,
    private readonly options: ConnectionOptions,
  ) {
    this.deadline = options.elapsed() + HELLO_MILLISECONDS;
  }

  get isIdle(): boolean {
    return this.phase === "idle";
  }

  get isNew(): boolean {
    return this.sent === undefined;
  }

  update(state: SidecarState): boolean {
    const difference = differenceOf(this.sent, state);
    if (difference === undefined) return false;
    this.sent = difference.sent;
    this.phase = "busy";
    this.deadline = this.options.elapsed() + APPLY_MILLISECONDS;
    this.send(difference.update);
    return true;
  }

  receive(bytes: Uint8Array): void {
    if (this.phase === "closed") return;
    // A sidecar that was sent nothing has nothing to say.
    const isExpected = this.phase !== "idle" && this.received.add(bytes, (line) => this.take(line));
    if (!isExpected) this.refuse("malformed");
  }

  drain(): void {
    if (this.phase !== "closed") this.sendRest();
  }

  checkTime(): void {
    const isWaiting = this.phase === "greeting" || this.phase === "busy";
    if (isWaiting && this.options.elapsed() > this.deadline) this.refuse("too slow");
  }

  refuse(reason: Refusal): void {
    if (this.phase !== "closed") this.options.refused(reason);
    this.close();
  }

  close(): void {
    if (this.phase === "closed") return;
    this.ended();
    this.socket.terminate();
  }

  ended(): void {
    this.phase = "closed";
    this.unsent = NOTHING;
  }

  /** Returns `false` for what no sidecar says now. */
  private take(line: string): boolean {
    const said = readSidecarLine(line);
    if (said === undefined || (this.phase === "greeting") !== (said.type === "hello")) return false;
    return said.type === "hello" ? this.greet(said) : this.acknowledge(said.revision);
  }

  private greet(hello: Extract<FromSidecar, { readonly type: "hello" }>): boolean {
    const reply = replyToHello(hello, this.options.version);
    this.send(reply);
    if (reply.type === "refused") {
      this.options.refused("newer protocol");
      // The reply fits into the buffer of any socket.
      this.ended();
      this.socket.end();
      return true;
    }
    this.phase = "idle";
    this.release = hello.version;
    this.options.greeted(this);
    return true;
  }

  private acknowledge(revision: number): boolean {
    if (this.phase !== "busy" || revision !== this.sent?.revision || this.unsent.length > 0) return false;
    this.phase = "idle";
    this.reportsIn = true;
    this.options.applied(this);
    return true;
  }

  private send(line: FromAgent): void {
    const bytes = new TextEncoder().encode(encodeLine(line));
    this.unsent = this.unsent.length === 0 ? bytes : Buffer.concat([this.unsent, bytes]);
    this.sendRest();
  }

  private sendRest(): void {
    if (this.unsent.length === 0) return;
    const count = this.socket.write(this.unsent);
    if (count > 0) this.unsent = this.unsent.subarray(count);
  }
}
