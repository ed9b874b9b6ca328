/**
 * One HTTP/2 connection, seen from the client (RFC 9113): its streams, and what
 * the other side may say in between.
 *
 * Knows no socket: what arrives is given to `receive()`, what is to be sent goes
 * to the `Wire`. Only what a client of gRPC needs: nothing is pushed, no
 * priorities, and a stream's body is handed over with its opening.
 */
import { Http2Failure, NO_HTTP2 } from "./failure.ts";
import * as frames from "./frames.ts";
import { HeaderBlockReader, type ReadHeaders } from "./header-block.ts";
import type { Outgoing } from "./outgoing.ts";
import { DEFAULT_WINDOW, Sender, type Wire } from "./sender.ts";
import { decodeSettings, encodeSettings, MOST_STREAMS, PUSH, WINDOW } from "./settings.ts";
import type { Opening, OpenStream, Stream, StreamEvents } from "./stream.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** A stream may be this far ahead of whoever takes from it. */
const STREAM_WINDOW = 1024 * 1024;
/** The connection as a whole is never the limit. */
const CONNECTION_WINDOW = frames.LARGEST_COUNT;
const LAST_STREAM = frames.LARGEST_COUNT - 2;

const PING_BYTES = 8;

const REFUSED_STREAM = 7;
const CANCEL = 8;

export class Http2Connection {
  private readonly reader = new frames.FrameReader();
  private readonly headers = new HeaderBlockReader();
  private readonly sender: Sender;
  private readonly streams = new Map<number, OpenStream>();
  /** Those that the other side has no place for yet. */
  private readonly queue: (() => void)[] = [];
  private readonly takers: Readonly<Record<number, (frame: frames.Frame) => void>> = {
    [frames.DATA]: (frame) => this.takeData(frame),
    [frames.RESET]: (frame) => this.takeReset(frame),
    [frames.SETTINGS]: (frame) => this.takeSettings(frame),
    [frames.PING]: (frame) => this.takePing(frame),
    [frames.GO_AWAY]: (frame) => this.takeFarewell(frame),
    [frames.WINDOW_UPDATE]: (frame) => this.takeWindow(frame),
  };
  private state: "open" | "going away" | "closed" = "open";
  private nextStream = 1;
  private mostStreams = Number.POSITIVE_INFINITY;
  private untold = 0;
  private heardSoFar = 0;
  private greeting: "awaited" | "heard" = "awaited";
  private readonly greetingHeard = Promise.withResolvers<void>();

  constructor(private readonly wire: Wire) {
    // Whoever does not wait for it learns of an end from the streams.
    this.greetingHeard.promise.catch(() => {});
    this.sender = new Sender(wire);
    this.sender.putBytes(PREFACE);
    this.sender.put(frames.SETTINGS, 0, encodeSettings([PUSH, 0], [WINDOW, STREAM_WINDOW]));
    this.sender.putWindow(0, CONNECTION_WINDOW - DEFAULT_WINDOW);
    this.sender.flush();
  }

  /** Whether a new stream has a chance. */
  get isOpen(): boolean {
    return this.state === "open" && this.nextStream <= LAST_STREAM;
  }

  /** Changes whenever something is heard. */
  get heard(): number {
    return this.heardSoFar;
  }

  /** Whether the other side is known to speak HTTP/2. */
  get isGreeted(): boolean {
    return this.greeting === "heard";
  }

  /** Settled once that is known. */
  get greeted(): Promise<void> {
    return this.greetingHeard.promise;
  }

  open(opening: Opening, events: StreamEvents): Stream {
    let stream: OpenStream | undefined;
    const start = () => {
      stream = this.start(opening, events);
    };
    if (this.isOpen && this.streams.size >= this.mostStreams) this.queue.push(start);
    else start();
    return {
      taken: (bytes) => stream && this.grant(stream, bytes),
      cancel: () => (stream ? this.cancel(stream) : this.leaveQueue(start)),
    };
  }

  receive(bytes: Uint8Array): void {
    if (this.state === "closed") return;
    this.heardSoFar += 1;
    try {
      for (const frame of this.reader.read(bytes)) this.take(frame);
    } catch (error) {
      this.lost(error);
    }
    this.flush();
  }

  /** The wire has come to its end. */
  lost(error: unknown): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.greetingHeard.reject(error);
    this.wire.close();
    const failure = this.isGreeted ? toBroken(error) : error;
    const open = [...this.streams.values()];
    this.streams.clear();
    for (const { events } of open) events.failed(failure);
    this.startQueued();
  }

  /**
   * For a connection that may be dead: takes no new streams, and is closed with the last one. The other side is asked
   * whether it is there; its answer is heard.
   */
  retire(): void {
    if (!this.isOpen) return;
    this.sender.put(frames.PING, 0, new Uint8Array(PING_BYTES));
    this.flush();
    this.goAway(LAST_STREAM);
  }

  close(): void {
    this.lost(new Http2Failure("broken", "the connection was closed"));
  }

  private start({ fields, body, more }: Opening, events: StreamEvents): OpenStream | undefined {
    if (!this.isOpen) {
      events.failed(new Http2Failure("refused", "the connection is closed"));
      return undefined;
    }
    const id = this.nextStream;
    this.nextStream += 2;
    const stream: OpenStream = { id, events, outgoing: this.sender.newBody(body, more), untold: 0 };
    this.streams.set(id, stream);
    this.sender.put(frames.HEADERS, id, fields, frames.END_HEADERS);
    this.sender.pump(id, stream.outgoing);
    this.flush();
    return stream;
  }

  private cancel(stream: OpenStream): void {
    if (!this.streams.has(stream.id)) return;
    this.sender.put(frames.RESET, stream.id, frames.numberBytes(CANCEL));
    this.forget(stream);
    this.flush();
  }

  /** Told in large steps: a frame for each would cost more than it brings. */
  private grant(stream: OpenStream, bytes: number): void {
    stream.untold += bytes;
    if (stream.untold < STREAM_WINDOW / 2 || !this.streams.has(stream.id)) return;
    this.sender.putWindow(stream.id, stream.untold);
    stream.untold = 0;
    this.flush();
  }

  private take(frame: frames.Frame): void {
    if (!this.isGreeted && frame.type !== frames.SETTINGS) throw new Http2Failure("broken", NO_HTTP2);
    const headers = this.headers.take(frame);
    if (headers !== undefined) this.takeHeaders(headers);
    // Kinds that are not known are to be passed over.
    this.takers[frame.type]?.(frame);
  }

  private takeHeaders({ stream: id, fields, isEnd }: ReadHeaders): void {
    const stream = this.streams.get(id);
    if (stream === undefined) return;
    stream.events.headers(fields);
    if (isEnd) this.finish(stream);
  }

  private takeData(frame: frames.Frame): void {
    const content = frames.contentOf(frame);
    this.untold += frame.payload.length;
    if (this.untold > CONNECTION_WINDOW / 2) {
      this.sender.putWindow(0, this.untold);
      this.untold = 0;
    }
    const stream = this.streams.get(frame.stream);
    if (stream === undefined) return;
    // Padding counts, and nobody takes it.
    this.grant(stream, frame.payload.length - content.length);
    stream.events.data(content);
    if ((frame.flags & frames.END_STREAM) !== 0) this.finish(stream);
  }

  private takeReset(frame: frames.Frame): void {
    const stream = this.streams.get(frame.stream);
    if (stream === undefined) return;
    const code = frames.numberAt(frame.payload, 0);
    this.forget(stream);
    const kind = code === REFUSED_STREAM ? "refused" : "broken";
    stream.events.failed(new Http2Failure(kind, `the other side gave the request up (HTTP/2 error ${code})`));
  }

  private takeSettings({ flags, payload }: frames.Frame): void {
    if ((flags & frames.ACKNOWLEDGED) !== 0) return;
    for (const [name, value] of decodeSettings(payload)) {
      if (name === MOST_STREAMS) this.mostStreams = value;
      if (name === WINDOW) this.sender.rewindow(value, this.bodies());
    }
    this.sender.put(frames.SETTINGS, 0, new Uint8Array(0), frames.ACKNOWLEDGED);
    this.greeting = "heard";
    this.greetingHeard.resolve();
    this.pumpAll();
    this.startQueued();
  }

  private takePing({ flags, payload }: frames.Frame): void {
    if ((flags & frames.ACKNOWLEDGED) === 0) this.sender.put(frames.PING, 0, payload, frames.ACKNOWLEDGED);
  }

  private takeWindow({ stream: id, payload }: frames.Frame): void {
    const bytes = frames.countAt(payload, 0);
    if (id === 0) this.sender.widen(bytes);
    else this.streams.get(id)?.outgoing.widen(bytes);
    this.pumpAll();
  }

  private takeFarewell({ payload }: frames.Frame): void {
    this.goAway(frames.countAt(payload, 0));
  }

  /** Requests behind the last one that is named were not begun; the others may still be answered. */
  private goAway(last: number): void {
    this.state = "going away";
    for (const stream of [...this.streams.values()].filter(({ id }) => id > last)) {
      this.streams.delete(stream.id);
      stream.events.failed(new Http2Failure("refused", "the other side is about to end"));
    }
    this.startQueued();
    this.closeIfDone();
  }

  private finish(stream: OpenStream): void {
    // Whoever has answered wants no more of the request.
    if (!stream.outgoing.hasEnded) this.sender.put(frames.RESET, stream.id, frames.numberBytes(CANCEL));
    this.forget(stream);
    stream.events.end();
  }

  private forget({ id }: OpenStream): void {
    this.streams.delete(id);
    this.startQueued();
    this.closeIfDone();
  }

  private leaveQueue(start: () => void): void {
    const place = this.queue.indexOf(start);
    if (place >= 0) this.queue.splice(place, 1);
  }

  /** On a connection that ends they are refused: nothing of them was sent. */
  private startQueued(): void {
    while (!this.isOpen || this.streams.size < this.mostStreams) {
      const start = this.queue.shift();
      if (start === undefined) return;
      start();
    }
  }

  private closeIfDone(): void {
    if (this.state === "going away" && this.streams.size === 0) this.close();
  }

  private bodies(): readonly Outgoing[] {
    return [...this.streams.values()].map(({ outgoing }) => outgoing);
  }

  private pumpAll(): void {
    for (const { id, outgoing } of this.streams.values()) this.sender.pump(id, outgoing);
  }

  private flush(): void {
    if (this.state !== "closed") this.sender.flush();
  }
}

/** Once the other side has greeted, an error that elsewhere means "never connected" tells nothing about what was sent. */
function toBroken(error: unknown): Http2Failure {
  if (error instanceof Http2Failure) return error;
  return new Http2Failure("broken", error instanceof Error ? error.message : String(error), error);
}
