/**
 * The connection of a sidecar of a release before v3.29: one call of `felix.PolicySync/Sync`, whose responses are the state of
 * its pod and every change of it.
 *
 *   greeting ── the call ──> idle ── update ──> busy ── all is sent, and the client has replied to a ping after it ──> idle
 *
 * The protocol has no acknowledgement: a client replies to a ping when it has read everything before it. As with other
 * sidecars nothing is sent before that, so that one that does not read costs the memory of one update, and not for long.
 */
import type { Socket } from "bun";
import type { RateLimit } from "../feed/rate-limit.ts";
import type { ConnectionOptions, FedConnection, Refusal } from "../feed/sidecar-connection.ts";
import type { SidecarVolume } from "../feed/sidecar-volumes.ts";
import type { SidecarState } from "../state/sidecar-states.ts";
import { differenceOf, type SentState } from "../state/state-difference.ts";
import {
  encodeFrame,
  encodeMessages,
  FLAG,
  FRAME,
  type Frame,
  FrameReader,
  INITIAL_WINDOW,
  incrementIn,
  initialWindowIn,
  MOST_FRAME_BYTES,
  ownSettings,
  pingFrame,
  refuseStream,
  responseHeaders,
  settingsAck,
} from "./http2-frames.ts";
import { SyncState } from "./sync-state.ts";

/** These sidecars do not say which release they are. */
export const EARLIER_RELEASE = "before v3.29";

const CALL_MILLISECONDS = 5_000;
const APPLY_MILLISECONDS = 10_000;
/** The request has no fields. */
const MOST_REQUEST_BYTES = 1_024;
/** A client confirms what it reads in pieces. Of all connections of a pod. */
export const FRAMES = { burst: 5_000, perSecond: 1_000 };
/** Settings, a ping or two, the call. */
const MOST_FRAMES_BEFORE_CALL = 100;
/** Of replies that the client does not read. */
const MOST_UNSENT_BYTES = 64 * 1024;
const TOO_LARGE =
  "its policies have too many combinations of rules, networks or ports for a sidecar of an earlier release, which denies everything: use fewer rules that pass, or restart the pod with a sidecar of this release";
const NOTHING = new Uint8Array(0);
const PING = new TextEncoder().encode("applied?");

export class SyncConnection implements FedConnection {
  release: string | undefined;
  reportsIn = false;
  private phase: "greeting" | "idle" | "busy" | "closed" = "greeting";
  private sent: SentState | undefined;
  /** Of the socket. */
  private unsent: Uint8Array = NOTHING;
  /** Of the response, as the windows of the client allow it. */
  private pending: Uint8Array = NOTHING;
  private deadline: number;
  private stream: number | undefined;
  private initialWindow = INITIAL_WINDOW;
  private streamWindow = INITIAL_WINDOW;
  private connectionWindow = INITIAL_WINDOW;
  private requestBytes = 0;
  private framesBeforeCall = 0;
  /** What is to be written after all frames that have arrived are read. */
  private replies: Uint8Array[] | undefined;
  private readonly state: SyncState;
  private readonly reader = new FrameReader();

  constructor(
    private readonly socket: Socket<unknown>,
    private readonly options: ConnectionOptions,
    { namespace, pod }: Pick<SidecarVolume, "namespace" | "pod">,
    private readonly frames: RateLimit,
  ) {
    this.deadline = options.elapsed() + CALL_MILLISECONDS;
    this.state = new SyncState(`${namespace}/${pod}`);
    this.write(ownSettings());
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
    const wasTooLarge = this.state.isTooLarge;
    const messages = this.state.messagesFor(difference.update, state);
    if (this.state.isTooLarge && !wasTooLarge) this.options.report(TOO_LARGE);
    if (messages.length === 0) return false;
    this.phase = "busy";
    this.deadline = this.options.elapsed() + APPLY_MILLISECONDS;
    this.pending = encodeMessages(messages);
    this.sendPending();
    return true;
  }

  receive(bytes: Uint8Array): void {
    if (this.phase === "closed") return;
    this.replies = [];
    const isExpected = this.reader.read(bytes, (frame) => this.isOpen && this.take(frame));
    const replies = this.replies;
    this.replies = undefined;
    if (!isExpected) this.refuse("malformed");
    if (!this.isOpen) return;
    if (replies.length > 0) this.write(Buffer.concat(replies));
    this.sendPending();
  }

  drain(): void {
    if (!this.isOpen) return;
    this.writeRest();
    this.sendPending();
  }

  checkTime(): void {
    const isWaiting = this.phase === "greeting" || this.phase === "busy";
    if (isWaiting && this.options.elapsed() > this.deadline) this.refuse("too slow");
  }

  refuse(reason: Refusal): void {
    if (this.isOpen) this.options.refused(reason);
    this.close();
  }

  close(): void {
    if (!this.isOpen) return;
    this.ended();
    this.socket.terminate();
  }

  ended(): void {
    this.phase = "closed";
    this.unsent = NOTHING;
    this.pending = NOTHING;
  }

  private get isOpen(): boolean {
    return this.phase !== "closed";
  }

  /** Returns `false` for what no client sends. */
  private take(frame: Frame): boolean {
    const { type, flags, stream, payload } = frame;
    if (!this.frames.take() || this.unsent.length > MOST_UNSENT_BYTES) return false;
    if (this.phase === "greeting") this.framesBeforeCall += 1;
    if (this.framesBeforeCall > MOST_FRAMES_BEFORE_CALL) return false;
    switch (type) {
      case FRAME.settings:
        return (flags & FLAG.ack) !== 0 || this.takeSettings(payload);
      case FRAME.ping:
        return this.takePing(frame);
      case FRAME.headers:
        return this.takeCall(frame);
      case FRAME.data:
        this.requestBytes += payload.length;
        if ((flags & FLAG.endStream) !== 0 && stream === this.stream) this.begin(stream);
        return this.requestBytes <= MOST_REQUEST_BYTES;
      case FRAME.windowUpdate:
        return this.widen(stream, incrementIn(payload));
      case FRAME.goAway:
        this.close();
        return true;
      case FRAME.resetStream:
        if (stream === this.stream) this.close();
        return true;
      default:
        return true;
    }
  }

  private takeSettings(payload: Uint8Array): boolean {
    const window = initialWindowIn(payload);
    if (window !== undefined) {
      this.streamWindow += window - this.initialWindow;
      this.initialWindow = window;
    }
    this.write(settingsAck());
    return true;
  }

  private takePing({ flags, payload }: Frame): boolean {
    if ((flags & FLAG.ack) === 0) {
      this.write(pingFrame(payload, FLAG.ack));
      return payload.length === PING.length;
    }
    if (this.phase !== "busy" || this.pending.length > 0 || Buffer.compare(payload, PING) !== 0) return false;
    this.phase = "idle";
    this.reportsIn = true;
    this.options.applied(this);
    return true;
  }

  private takeCall({ flags, stream }: Frame): boolean {
    if (stream % 2 === 0) return false;
    if (this.stream !== undefined && this.stream !== stream) {
      this.write(refuseStream(stream));
      return true;
    }
    this.stream = stream;
    if ((flags & FLAG.endStream) !== 0) this.begin(stream);
    return true;
  }

  /** The request is complete. */
  private begin(stream: number): void {
    if (this.phase !== "greeting") return;
    this.write(responseHeaders(stream));
    this.phase = "idle";
    this.release = EARLIER_RELEASE;
    this.options.greeted(this);
  }

  private widen(stream: number, increment: number): boolean {
    if (stream === 0) this.connectionWindow += increment;
    else if (stream === this.stream) this.streamWindow += increment;
    return increment > 0;
  }

  /** As much as the client and the socket take now; after what it has sent is read. */
  private sendPending(): void {
    const { stream } = this;
    if (stream === undefined || this.pending.length === 0 || this.replies !== undefined) return;
    while (this.pending.length > 0 && this.unsent.length === 0) {
      const most = Math.min(MOST_FRAME_BYTES, this.streamWindow, this.connectionWindow, this.pending.length);
      if (most <= 0) return;
      const payload = this.pending.subarray(0, most);
      this.pending = this.pending.subarray(most);
      this.streamWindow -= most;
      this.connectionWindow -= most;
      this.write(encodeFrame({ type: FRAME.data, flags: 0, stream, payload }));
    }
    if (this.pending.length === 0) this.write(pingFrame(PING, 0));
  }

  private write(bytes: Uint8Array): void {
    if (this.replies !== undefined) {
      this.replies.push(bytes);
      return;
    }
    this.unsent = this.unsent.length === 0 ? bytes : Buffer.concat([this.unsent, bytes]);
    this.writeRest();
  }

  private writeRest(): void {
    if (this.unsent.length === 0) return;
    const count = this.socket.write(this.unsent);
    if (count > 0) this.unsent = this.unsent.subarray(count);
  }
}
