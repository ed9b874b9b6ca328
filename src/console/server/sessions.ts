/**
 * Who is logged in: in memory alone, so that a restart ends all sessions. What a browser keeps is random and says nothing; the
 * reader's token is in the source of the session, and in what keeps it out of messages.
 *
 * A session ends when it was not used for a while, after a long time in any case, with a logout, when its token is refused, and for a
 * newer one of the same reader. Then its signal fires, with the refusal that the reader is told.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../datastore/replica/clock.ts";
import type { Timers } from "../../timers.ts";
import type { ConsoleSource } from "../source.ts";
import { Refusal, SESSION_ENDED } from "./refusal.ts";

export interface SessionLimits {
  readonly idleMilliseconds: number;
  readonly longestMilliseconds: number;
  readonly most: number;
  readonly mostOfUser: number;
  /** Of one session at the same time. */
  readonly mostRequests: number;
}

export const SESSION_LIMITS: SessionLimits = {
  idleMilliseconds: 30 * 60_000,
  longestMilliseconds: 8 * 60 * 60_000,
  most: 1_000,
  mostOfUser: 16,
  mostRequests: 32,
};

export interface SessionTimes {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly timers: Timers;
}

const SECRET_BYTES = 32;

export class ReaderSession {
  readonly csrfToken = randomSecret();
  /** Milliseconds since 1970. */
  readonly expires: number;
  private readonly ending = new AbortController();
  private readonly endsAt: number;
  private usedAt: number;
  private requests = 0;
  private cancelTimer = () => {};

  constructor(
    readonly source: ConsoleSource,
    /** The text without the token of the reader. */
    readonly hideToken: (text: string) => string,
    private readonly limits: SessionLimits,
    private readonly times: SessionTimes,
  ) {
    this.expires = times.now() + limits.longestMilliseconds;
    this.usedAt = times.clock.now();
    this.endsAt = this.usedAt + limits.longestMilliseconds;
    this.expireLater();
  }

  /** Fires with a `Refusal` when the session ends. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** Of somebody who uses the page: the time without use begins again. */
  use(): void {
    this.usedAt = this.times.clock.now();
  }

  /** Ends it if it is time. A timer may come late, for example after the machine was suspended. */
  expire(): void {
    const now = this.times.clock.now();
    const { idleMilliseconds } = this.limits;
    const minutes = Math.round(idleMilliseconds / 60_000);
    if (now >= this.endsAt) this.end("The session has ended: it was as long as a session may be");
    else if (now - this.usedAt >= idleMilliseconds)
      this.end(`The session has ended: it was not used for ${minutes} minutes`);
  }

  end(why: string): void {
    if (this.signal.aborted) return;
    this.cancelTimer();
    this.ending.abort(new Refusal(401, why, SESSION_ENDED));
    // Whatever it still waits for ends with it.
    this.source.close().catch(() => {});
  }

  hasCsrfToken(given: string | undefined): boolean {
    return given !== undefined && areEqual(given, this.csrfToken);
  }

  /** A place among the requests of the session at the same time, until it is disposed of. Throws `Refusal`. */
  beginRequest(): Disposable {
    const { mostRequests } = this.limits;
    if (this.requests >= mostRequests)
      throw new Refusal(429, `This session has ${mostRequests} requests at the same time`, "Try again later");
    this.requests += 1;
    return {
      [Symbol.dispose]: () => {
        this.requests -= 1;
      },
    };
  }

  private expireLater(): void {
    const end = Math.min(this.endsAt, this.usedAt + this.limits.idleMilliseconds);
    this.cancelTimer = this.times.timers.after(Math.max(end - this.times.clock.now(), 1), () => {
      this.expire();
      if (!this.signal.aborted) this.expireLater();
    });
  }
}

export class Sessions {
  /** By the hash of what the cookie has, the oldest first. */
  private readonly sessions = new Map<string, ReaderSession>();

  constructor(
    private readonly limits: SessionLimits,
    private readonly times: SessionTimes,
  ) {}

  get size(): number {
    return this.sessions.size;
  }

  /** Returns what the cookie has. Throws `Refusal` if there are too many of other readers. */
  open(
    source: ConsoleSource,
    hideToken: ReaderSession["hideToken"],
  ): { readonly secret: string; readonly session: ReaderSession } {
    const own = [...this.sessions.values()].filter((session) => session.source.user === source.user);
    for (const session of own.slice(0, Math.max(own.length - this.limits.mostOfUser + 1, 0)))
      session.end("The session has ended: you have logged in too often since");
    if (this.sessions.size >= this.limits.most)
      throw new Refusal(503, `${this.limits.most} sessions are open`, "Try again later");
    const secret = randomSecret();
    const session = new ReaderSession(source, hideToken, this.limits, this.times);
    const key = hashOf(secret);
    this.sessions.set(key, session);
    session.signal.addEventListener("abort", () => this.sessions.delete(key), { once: true });
    return { secret, session };
  }

  /** `undefined`: there is none, or it has ended. */
  find(secret: string): ReaderSession | undefined {
    const session = this.sessions.get(hashOf(secret));
    session?.expire();
    return session?.signal.aborted === true ? undefined : session;
  }

  endAll(why: string): void {
    for (const session of [...this.sessions.values()]) session.end(why);
  }
}

function randomSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** So the time of a search says nothing about what was searched for. */
function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64");
}

function areEqual(first: string, second: string): boolean {
  const [one, other] = [first, second].map((text) => createHash("sha256").update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
