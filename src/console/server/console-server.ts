/**
 * The server of the console: its page, and what the page asks (src/console/api).
 *
 *   request ──> request-checks.ts   does it come from the console's own page?
 *           ──> sessions.ts         cookie and CSRF token: whose is it?
 *           ──> streams.ts          how many go on, and may the reader still see them?
 *           ──> ConsoleSource       asked as this reader
 *
 * The token of a reader arrives with the login, goes to `OpenSource`, and nowhere else.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TlsOptions } from "node:tls";
import { peerOf } from "../../ip/peer.ts";
import { withinDescriptors } from "../../limited-connections.ts";
import { HIDDEN } from "../../redaction.ts";
import { unlessAborted } from "../../timers.ts";
import { type RefusedToken, TokenAttempts } from "../../web/token-attempts.ts";
import { WebListener } from "../../web/web-listener.ts";
import { CSRF_HEADER, loginSchema, type Session, UNATTENDED_HEADER } from "../api/session.ts";
import type { ConsoleSource, OpenSource } from "../source.ts";
import { StaticAnswer, sendJson, sendLines } from "./answers.ts";
import { type ApiCall, apiRoute, type PostedRequest } from "./api-routes.ts";
import { decodeBody } from "./decode-body.ts";
import type { PageFiles } from "./page-files.ts";
import { meansRefusedToken, Refusal, refusalOf, SESSION_ENDED } from "./refusal.ts";
import { type CheckedRequest, checkRequest, type Site } from "./request-checks.ts";
import { type ReaderSession, SESSION_LIMITS, type SessionLimits, Sessions, type SessionTimes } from "./sessions.ts";
import { STREAM_LIMITS, type StreamLimits, Streams } from "./streams.ts";

export interface ConsoleOptions extends SessionTimes {
  readonly page: PageFiles;
  readonly openSource: OpenSource;
  /** Who the console is; the rest of a `Session` is of its reader. */
  readonly about: Pick<Session, "product" | "version" | "mode" | "writable">;
  /** Name of the cookie. */
  readonly cookie: () => string;
  readonly isOwnHost: Site["isOwnHost"];
  /** No message contains a token. */
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  readonly onSessionEnd?: () => void;
  readonly sessionLimits?: SessionLimits;
  readonly streamLimits?: StreamLimits;
}

const MOST_HEAD_BYTES = 16 * 1024;
const MOST_BODY_BYTES = 64 * 1024;
const CONNECTION_LIMITS = { most: 2_048, mostReplied: 1_024, requestMilliseconds: 10_000, replyMilliseconds: 60_000 };
const SHARE_OF_DESCRIPTORS = 1 / 2;
/** For an answer that does not go on. */
const ANSWER_MILLISECONDS = 60_000;
/** To read the rest of an answer that has ended. */
const READ_MILLISECONDS = 30_000;
/** Of all addresses together. */
const LOGIN_LIMITS = { mostAtOnce: 32, mostRefused: 300 };

interface Login {
  readonly kind: "reader";
  readonly source: ConsoleSource;
  /** The text without the token of the reader. */
  readonly hideToken: (text: string) => string;
}

export class ConsoleServer {
  private readonly listener: WebListener;
  private readonly sessions: Sessions;
  private readonly streams: Streams;
  private readonly logins: TokenAttempts<Login>;
  private readonly document: StaticAnswer;
  private readonly assets: ReadonlyMap<string, StaticAnswer>;
  private scheme: Site["scheme"] = "https";

  constructor(private readonly options: ConsoleOptions) {
    const { page, sessionLimits = SESSION_LIMITS, streamLimits = STREAM_LIMITS, clock, timers } = options;
    this.sessions = new Sessions(sessionLimits, options);
    this.streams = new Streams(streamLimits, timers);
    this.logins = new TokenAttempts(
      (token) => this.logIn(token),
      () => clock.now(),
      LOGIN_LIMITS,
    );
    this.document = new StaticAnswer("page", { type: "text/html; charset=utf-8", body: page.html });
    this.assets = new Map(
      [...page.assets].map(([name, asset]) => [`/assets/${name}`, new StaticAnswer("asset", asset)]),
    );
    this.listener = new WebListener({
      mostHeadBytes: MOST_HEAD_BYTES,
      limits: { ...CONNECTION_LIMITS, most: withinDescriptors(CONNECTION_LIMITS.most, SHARE_OF_DESCRIPTORS) },
      serve: (request, response) => void this.serve(request, response),
    });
  }

  /** From now on there, and with this certificate; without one by plain HTTP, which is for loopback alone. */
  listen(hostname: string, port: number, tls?: TlsOptions): Promise<void> {
    this.scheme = tls === undefined ? "http" : "https";
    return this.listener.listen({ hostname, port, ...(tls === undefined ? {} : { tls }) });
  }

  get port(): number {
    return this.listener.port;
  }

  close(): void {
    this.sessions.endAll("The console has ended");
    this.listener.close();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    response.on("error", () => {});
    try {
      await this.answer(request, response, closed.signal);
    } catch (failure) {
      this.refuse(request, response, failure);
    }
    const cancel = this.options.timers.after(READ_MILLISECONDS, () => response.destroy());
    response.once("close", cancel);
    if (closed.signal.aborted) cancel();
  }

  private async answer(request: IncomingMessage, response: ServerResponse, closed: AbortSignal): Promise<void> {
    const { method = "", url = "", rawHeaders } = request;
    const site: Site = { scheme: this.scheme, isOwnHost: this.options.isOwnHost };
    const checked = checkRequest({ method, target: url, rawHeaders }, site);
    const body = await readBody(request, checked);
    this.listener.begin(request, response);
    const { path } = checked;
    if (!path.startsWith("/api/")) return this.sendStatic(checked, response);
    if (path === "/api/login") return this.sendLogin(request, response, { checked, body });
    const session = this.sessionOf(checked);
    using _place = session.beginRequest();
    if (checked.header(UNATTENDED_HEADER) === undefined) session.use();
    await this.answerReader(session, { ...checked, body }, { response, closed });
  }

  private sendStatic({ method, path, header }: CheckedRequest, response: ServerResponse): void {
    if (method !== "GET") throw new Refusal(405, "The page of the console is only read; use GET");
    const file = path === "/" ? this.document : this.assets.get(path);
    if (file === undefined) throw new Refusal(404, "The console has no such path");
    file.send(response, header("accept-encoding"));
  }

  private async sendLogin(
    request: IncomingMessage,
    response: ServerResponse,
    { checked, body }: { readonly checked: CheckedRequest; readonly body: string },
  ): Promise<void> {
    requirePost(checked);
    const { log, about, onSessionEnd } = this.options;
    const { token } = decodeBody(loginSchema, body, 'send {"token": "…"}');
    if (!/^[\x21-\x7e]{1,16384}$/.test(token)) throw new Refusal(401, "This is not a token", TOKEN_REMEDY[about.mode]);
    const peer = peerOf(request.socket.remoteAddress);
    const from = peer === "" ? "this host" : peer;
    const login = await this.logins.verifyFrom(peer, token);
    if (login === undefined)
      throw new Refusal(429, "Too many logins were refused, or are under way", "Try again in a minute");
    if (login.kind === "refused") {
      log(`Login from ${from} refused: ${login.why}`, "WARNING");
      throw new Refusal(401, login.why, TOKEN_REMEDY[about.mode]);
    }
    const { secret, session } = this.openSession(login);
    log(`${login.source.user} has logged in from ${from}`, "INFO");
    session.signal.addEventListener("abort", () => {
      log(`${login.source.user}: ${session.signal.reason.message}`, "INFO");
      onSessionEnd?.();
    });
    sendJson(response, 200, this.aboutSession(session), { "set-cookie": this.cookieOf(secret) });
  }

  private openSession({ source, hideToken }: Login) {
    try {
      return this.sessions.open(source, hideToken);
    } catch (failure) {
      source.close().catch(() => {});
      throw failure;
    }
  }

  private async logIn(token: string): Promise<Login | RefusedToken> {
    const limit = this.options.timers.timeout(ANSWER_MILLISECONDS);
    const hideToken = (text: string) => text.replaceAll(token, HIDDEN);
    try {
      return { kind: "reader", source: await this.options.openSource(token, limit.signal), hideToken };
    } catch (failure) {
      const refusal = this.refusalFor(failure, hideToken);
      // Any other failure says nothing about the token.
      if (!meansRefusedToken(failure)) throw refusal;
      return { kind: "refused", why: refusal.message };
    } finally {
      limit.cancel();
    }
  }

  /** Throws `Refusal`. */
  private sessionOf({ header }: CheckedRequest): ReaderSession {
    const secret = cookieIn(header("cookie") ?? "", this.options.cookie());
    const session = secret === undefined ? undefined : this.sessions.find(secret);
    if (session === undefined)
      throw new Refusal(401, secret === undefined ? "You are not logged in" : "The session has ended", SESSION_ENDED);
    if (!session.hasCsrfToken(header(CSRF_HEADER)))
      throw new Refusal(
        403,
        `The header "${CSRF_HEADER}" does not have the token of the session`,
        "Load the page again",
      );
    return session;
  }

  private async answerReader(
    session: ReaderSession,
    request: PostedRequest,
    { response, closed }: { readonly response: ServerResponse; readonly closed: AbortSignal },
  ): Promise<void> {
    const { path, method } = request;
    if (path === "/api/session" && method === "GET") return sendJson(response, 200, this.aboutSession(session));
    if (path === "/api/logout") {
      requirePost(request);
      session.end("The session has ended: you have logged out");
      return sendJson(response, 200, {}, { "set-cookie": this.cookieOf("", "; Max-Age=0") });
    }
    try {
      await this.answerQuestion(session, request, { response, closed });
    } catch (failure) {
      throw this.refusalForReader(failure, session);
    }
  }

  private async answerQuestion(
    session: ReaderSession,
    request: PostedRequest,
    { response, closed }: { readonly response: ServerResponse; readonly closed: AbortSignal },
  ): Promise<void> {
    const { writable } = this.options.about;
    const route = apiRoute(request, { writable, clock: this.options.clock });
    const limit = this.options.timers.timeout(ANSWER_MILLISECONDS);
    try {
      if (route.kind === "stream") {
        using stream = await this.streams.open(session);
        return await this.sendRoute(route, session, { response, signal: AbortSignal.any([stream.signal, closed]) });
      }
      const signal = AbortSignal.any([session.signal, closed, limit.signal]);
      return await this.sendRoute(route, session, { response, signal });
    } finally {
      limit.cancel();
    }
  }

  private async sendRoute(
    route: ApiCall,
    session: ReaderSession,
    { response, signal }: { readonly response: ServerResponse; readonly signal: AbortSignal },
  ): Promise<void> {
    if (route.kind === "value")
      return sendJson(response, 200, await unlessAborted(route.ask(session.source, signal), signal));
    const { timers } = this.options;
    const refused = (failure: unknown) => this.refusalForReader(failure, session);
    await sendLines(response, route.lines(session.source, signal), { signal, timers, refused });
  }

  private aboutSession({ csrfToken, expires, source }: ReaderSession): Session {
    const { about, sessionLimits = SESSION_LIMITS } = this.options;
    return { ...about, user: source.user, csrfToken, expires, idleMilliseconds: sessionLimits.idleMilliseconds };
  }

  private cookieOf(secret: string, more = ""): string {
    return `${this.options.cookie()}=${secret}; Path=/; Secure; HttpOnly; SameSite=Strict${more}`;
  }

  /** A token that is refused ends the session. */
  private refusalForReader(failure: unknown, session: ReaderSession): Refusal {
    if (!meansRefusedToken(failure)) return this.refusalFor(failure, session.hideToken);
    session.end("The session has ended: its token is not valid any more");
    // In these words, and not in those of whatever question came first.
    return refusalOf(session.signal.reason);
  }

  private refusalFor(failure: unknown, hideToken: Login["hideToken"]): Refusal {
    if (failure instanceof DOMException && failure.name === "TimeoutError")
      return new Refusal(504, `The answer took longer than ${ANSWER_MILLISECONDS / 1_000} seconds`, "Ask for less");
    const refusal = refusalOf(failure);
    // Nothing that a reader can change, and not logged before.
    if (refusal.status === 500 && refusal !== failure) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      this.options.log(`Cannot answer: ${hideToken(reason)}`, "WARNING");
    }
    return refusal.with(hideToken);
  }

  private refuse(request: IncomingMessage, response: ServerResponse, failure: unknown): void {
    if (response.destroyed) return;
    if (response.headersSent) return void response.destroy();
    const { status, answer } = this.refusalFor(failure, (text) => text);
    // The rest of a body is not read.
    const isUnread = !request.complete;
    if (isUnread) response.once("finish", () => request.destroy());
    const { mode } = this.options.about;
    const headers = {
      ...(isUnread ? { connection: "close" } : {}),
      ...(status === 429 || status === 503 ? { "retry-after": "10" } : {}),
    };
    sendJson(response, status, status === 401 ? { ...answer, mode } : answer, headers);
  }
}

const TOKEN_REMEDY = {
  cluster: "Use a token of a user or of a service account: kubectl create token NAME",
  host: "Open the address that was printed last on the terminal of the console",
} as const;

function requirePost({ method }: CheckedRequest): void {
  if (method !== "POST") throw new Refusal(405, "Use POST");
}

function cookieIn(header: string, name: string): string | undefined {
  for (const each of header.split(";")) {
    const [key, value] = each.trim().split("=", 2);
    if (key === name && value !== undefined && value !== "") return value;
  }
  return undefined;
}

/** "" without one. Throws `Refusal`. */
async function readBody(request: IncomingMessage, { method, header }: CheckedRequest): Promise<string> {
  const hasBody = Number(header("content-length") ?? 0) > 0 || header("transfer-encoding") !== undefined;
  if (!hasBody) return "";
  if (method === "GET") throw new Refusal(400, "A GET has no body");
  if (header("content-type")?.split(";")[0]?.trim().toLowerCase() !== "application/json")
    throw new Refusal(415, "The body is not JSON", "Send it with the type application/json");
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  request.on("data", (part: Uint8Array) => {
    bytes += part.length;
    if (bytes > MOST_BODY_BYTES) return reject(new Refusal(413, `The body is longer than ${MOST_BODY_BYTES} bytes`));
    parts.push(part);
  });
  request.once("end", resolve);
  request.once("error", () => reject(new Refusal(400, "The body did not arrive as a whole")));
  await promise;
  return Buffer.concat(parts).toString();
}
