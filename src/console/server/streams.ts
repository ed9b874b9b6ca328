/**
 * Answers that go on: how many there are, and how long their reader may read them. While a session has one, what the reader may see
 * is asked for again and again; if it has changed, or cannot be asked for, its streams end.
 */
import { type Timers, unlessAborted } from "../../timers.ts";
import { meansRefusedToken, Refusal } from "./refusal.ts";
import type { ReaderSession } from "./sessions.ts";

export interface StreamLimits {
  readonly mostOfSession: number;
  readonly most: number;
  readonly reviewMilliseconds: number;
}

/** A browser opens six connections to one server. */
export const STREAM_LIMITS: StreamLimits = { mostOfSession: 8, most: 256, reviewMilliseconds: 30_000 };

export interface OpenStream extends Disposable {
  /** Fires with a `Refusal`. */
  readonly signal: AbortSignal;
}

const LONGEST_REVIEW_MILLISECONDS = 15_000;

export class Streams {
  private size = 0;
  private readonly sessions = new Map<ReaderSession, StreamsOfSession>();

  constructor(
    private readonly limits: StreamLimits,
    private readonly timers: Timers,
  ) {}

  /** Throws `Refusal` if there are too many, and what the source throws if the reader may see nothing. */
  async open(session: ReaderSession): Promise<OpenStream> {
    const { most, mostOfSession } = this.limits;
    const known = this.sessions.get(session);
    if ((known?.size ?? 0) >= mostOfSession)
      throw new Refusal(429, `This session has ${mostOfSession} streams already`, "Close other windows of the console");
    if (this.size >= most) throw new Refusal(503, `The console has ${most} streams already`, "Try again later");
    const ofSession = known ?? new StreamsOfSession(session, this.limits, this.timers);
    this.sessions.set(session, ofSession);
    this.size += 1;
    const ending = ofSession.add();
    const stream: OpenStream = {
      signal: AbortSignal.any([session.signal, ending.signal]),
      [Symbol.dispose]: () => {
        this.size -= 1;
        ofSession.remove(ending);
        if (ofSession.size === 0) this.sessions.delete(session);
      },
    };
    try {
      await ofSession.isReviewed;
    } catch (failure) {
      stream[Symbol.dispose]();
      throw failure;
    }
    return stream;
  }
}

class StreamsOfSession {
  /** Rejects if the reader may see nothing. */
  readonly isReviewed: Promise<void>;
  private readonly endings = new Set<AbortController>();
  private readonly closing = new AbortController();
  private rights = "";
  private cancelTimer = () => {};

  constructor(
    private readonly session: ReaderSession,
    private readonly limits: StreamLimits,
    private readonly timers: Timers,
  ) {
    this.isReviewed = this.reviewFirst();
    // Reported to whoever awaits it.
    this.isReviewed.catch(() => {});
  }

  get size(): number {
    return this.endings.size;
  }

  add(): AbortController {
    const ending = new AbortController();
    this.endings.add(ending);
    return ending;
  }

  remove(ending: AbortController): void {
    this.endings.delete(ending);
    if (this.size > 0) return;
    this.cancelTimer();
    this.closing.abort();
  }

  private async reviewFirst(): Promise<void> {
    this.rights = await this.ask();
    this.reviewLater();
  }

  private reviewLater(): void {
    if (this.closing.signal.aborted || this.session.signal.aborted) return;
    this.cancelTimer = this.timers.after(this.limits.reviewMilliseconds, () => void this.review());
  }

  private async review(): Promise<void> {
    try {
      const rights = await this.ask();
      if (rights !== this.rights) this.endAll(new Refusal(409, "What you may see has changed", "Open it again"));
      this.rights = rights;
    } catch (failure) {
      if (this.closing.signal.aborted) return;
      if (meansRefusedToken(failure)) return this.session.end("The session has ended: its token is not valid any more");
      this.endAll(new Refusal(503, "The API server does not say what you may see", "Try again later"));
    }
    this.reviewLater();
  }

  private async ask(): Promise<string> {
    const limit = this.timers.timeout(LONGEST_REVIEW_MILLISECONDS);
    const signal = AbortSignal.any([limit.signal, this.closing.signal, this.session.signal]);
    try {
      return await unlessAborted(this.session.source.rights(signal), signal);
    } finally {
      limit.cancel();
    }
  }

  private endAll(why: Refusal): void {
    for (const ending of [...this.endings]) ending.abort(why);
  }
}
