/**
 * The client of the orchestrator's API: sends requests with the current
 * credentials, within time limits, and repeats those that may be repeated. It does
 * not interpret what it sends and receives.
 *
 * Requests share one HTTP/2 connection, which is the cheapest for a process that
 * sends several at once (docs/decisions/kubernetes-client.md). HTTP/1.1 is used for
 * watches, with a proxy, for a server without HTTP/2, and after a request without a
 * response: an abandoned HTTP/1.1 connection is closed, whereas the next requests
 * would wait on a dead HTTP/2 connection as well.
 */
import type { KubeAccess } from "../config/kube-access.ts";
import { type ErrorKind, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { linesOf } from "../lines.ts";
import { SYSTEM_TIMERS, type Timers } from "../timers.ts";
import { VERSION } from "../version.ts";
import type { KubeClient, KubeLines, KubeRequest, KubeResponse, WatchEvent } from "./api.ts";
import { type Connection, type ConnectionMeans, openConnection } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import {
  type AnswerHead,
  endedAtOnce,
  failureOfConnection,
  failureOfRedirect,
  failureOfSize,
  isSilence,
  type KubeFailure,
  unavailable,
} from "./failure.ts";
import { requireOk } from "./require-ok.ts";
import { LIMITS, type Limits, Retries } from "./retries.ts";
import { missingRolesPause, retryAfterMilliseconds } from "./retry-after.ts";
import { CUT_OFF, eventsOf } from "./watch-stream.ts";

export interface KubeMeans extends ConnectionMeans {
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  /** The name of the program, for the User-Agent; the product's if absent. */
  readonly program?: string;
  /** The error kind for an API that cannot be used; a datastore has its own. */
  readonly unavailableAs?: ErrorKind;
  readonly limits?: Limits;
  /** For a simulation, which has neither sockets nor real time. */
  readonly fetch?: Fetch;
  readonly timers?: Timers;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/** What the client uses of a `Response`. */
export interface Answer extends AnswerHead {
  readonly ok: boolean;
  readonly body: AnswerBody | null;
  text(): Promise<string>;
}

interface AnswerBody extends AsyncIterable<Uint8Array> {
  cancel(): Promise<void>;
}

export type Fetch = (url: string, options: BunFetchRequestInit) => Promise<Answer>;

export type OpenKubeClient = (access: KubeAccess, means: KubeMeans) => Promise<KubeClient>;

/** Reads the files that `access` names; connects with the first request. */
export async function openKubeClient(access: KubeAccess, means: KubeMeans): Promise<KubeClient & KubeLines> {
  return new FetchClient(await openConnection(access, means), means);
}

/** On a connection that the caller has made. */
export function openKubeClientOn(connection: Connection, means: KubeMeans): KubeClient {
  return new FetchClient(connection, means);
}

/**
 * The server ends a watch after some minutes, so that watches spread over its replicas again. Each has another length:
 * those that began together, when a server started, would end together for ever.
 */
export const WATCH_SECONDS = { shortest: 300, longest: 600 };
const WATCH_GRACE_SECONDS = 30;
/**
 * The API server sends a bookmark about every minute, if it has heard anything of the kind since it started. Behind a proxy
 * that stays alive nothing else shows that the server has gone.
 */
export const WATCH_SILENCE_MILLISECONDS = 90_000;
/** By what share it may be shorter: watches that lost their server at the same moment do not come back at the same moment. */
const SILENCE_JITTER = 1 / 9;
/**
 * A watch that ends sooner was not kept, by a proxy that closes it or a server that shuts down, whatever it has sent: asked for
 * again without a pause, it would be closed again.
 */
const SHORTEST_WATCH_MILLISECONDS = 5_000;

interface Attempt {
  readonly url: string;
  readonly request: KubeRequest;
  readonly signal: AbortSignal;
  readonly protocol: "http2" | "http1.1";
}

class FetchClient implements KubeClient, KubeLines {
  private readonly closing = new AbortController();
  private readonly server: string;
  private readonly kind: ErrorKind;
  private protocol: Attempt["protocol"];

  constructor(
    private readonly connection: Connection,
    private readonly means: KubeMeans,
  ) {
    const { server, cluster } = connection;
    this.server = server;
    this.kind = means.unavailableAs ?? "api-unavailable";
    this.protocol = server.startsWith("https:") && cluster.proxyUrl === undefined ? "http2" : "http1.1";
  }

  async request(request: KubeRequest): Promise<KubeResponse> {
    const stop =
      request.signal === undefined ? this.closing.signal : AbortSignal.any([request.signal, this.closing.signal]);
    const retries = this.retriesUntil(stop);
    return this.requestWithin(retries, request).finally(() => retries.end());
  }

  async *watch(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncIterable<WatchEvent> {
    const seconds = Number(query["timeoutSeconds"] ?? this.lengthOfWatch());
    const wholeQuery = { ...query, watch: "1", timeoutSeconds: String(seconds) };
    const request: KubeRequest = { method: "GET", path, query: wholeQuery };
    const limit = this.timers.timeout((seconds + WATCH_GRACE_SECONDS) * 1_000);
    const url = this.urlOf(path, wholeQuery);
    const silence = new Silence(this.timers);
    const ends = AbortSignal.any([signal, this.closing.signal, limit.signal, silence.signal]);
    let isOpen = false;
    try {
      const { response, refusal: text } = await this.startWatch(
        { url, request, signal: ends, protocol: "http1.1" },
        silence,
      );
      if (text === undefined) {
        isOpen = true;
        yield* this.eventsWithin(response, { silence, ends, query });
      } else if (response.status === 410) yield { type: "ERROR", text };
      else {
        const refused = response.status === 401 ? await this.unauthorized(text) : { status: response.status, text };
        requireOk(refused, request, this.kind);
      }
    } catch (error) {
      const hasNoResponse = silence.signal.aborted && !isOpen;
      if (!ends.aborted || hasNoResponse) {
        throw error instanceof PluginError ? error : this.unavailable(await this.explain(error));
      }
    } finally {
      limit.cancel();
      silence.cancel();
    }
    if (silence.signal.aborted && !signal.aborted) yield { type: "SILENT", text: "{}" };
  }

  async *lines(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncIterable<string> {
    const request: KubeRequest = { method: "GET", path, query };
    const silence = new Silence(this.timers);
    const ends = AbortSignal.any([signal, this.closing.signal, silence.signal]);
    const stopped = AbortSignal.any([signal, this.closing.signal]);
    try {
      const attempt: Attempt = { url: this.urlOf(path, query), request, signal: ends, protocol: "http1.1" };
      const { response, refusal: text } = await this.startWatch(attempt, silence);
      if (text === undefined) yield* linesOf(response.body ?? empty(), CUT_OFF);
      else {
        const { status } = response;
        requireOk(status === 401 ? await this.unauthorized(text) : { status, text }, request, this.kind);
      }
    } catch (error) {
      if (stopped.aborted) return;
      throw error instanceof PluginError ? error : this.unavailable(await this.explain(error));
    } finally {
      silence.cancel();
    }
  }

  /** The events of a watch that the server has accepted. */
  private async *eventsWithin(
    { body }: Answer,
    { silence, ends, query }: { silence: Silence; ends: AbortSignal; query: Readonly<Record<string, string>> },
  ): AsyncIterable<WatchEvent> {
    const openedAt = this.means.elapsed();
    const hasBookmarks = query["allowWatchBookmarks"] === "true";
    const longest = WATCH_SILENCE_MILLISECONDS * (1 - this.random() * SILENCE_JITTER);
    const listen = () => (hasBookmarks ? silence.await(longest) : silence.cancel());
    listen();
    yield { type: "OPENED", text: "{}" };
    for await (const event of eventsOf(body ?? empty())) {
      listen();
      yield event;
      // It says why the watch ends.
      if (event.type === "ERROR") return;
    }
    const lasted = this.means.elapsed() - openedAt;
    if (lasted < SHORTEST_WATCH_MILLISECONDS && !ends.aborted) throw endedAtOnce(lasted);
  }

  async close(): Promise<void> {
    this.closing.abort();
  }

  private async requestWithin(retries: Retries, request: KubeRequest): Promise<KubeResponse> {
    const url = this.urlOf(request.path, request.query);
    for (let mayRenew = true; ; ) {
      let response: Answer;
      let text: string;
      const attempt = { url, request, signal: retries.nextAttempt(), protocol: this.protocol };
      try {
        response = await this.send(attempt);
        text = await textOf(response, request.mostBytes);
      } catch (error) {
        await this.recover(error, attempt, retries);
        continue;
      }
      if (response.status === 401 && mayRenew && this.connection.credentials.renew()) {
        mayRenew = false;
        continue;
      }
      const pause = retryAfterMilliseconds(response) ?? missingRolesPause(response.status, text);
      const date = response.headers.get("date") ?? undefined;
      if (pause === undefined || request.attempt === "once" || !retries.allow("wait", pause)) {
        return response.status === 401 ? this.unauthorized(text) : { status: response.status, text, date };
      }
      await retries.pause(pause);
    }
  }

  /** A server that has just started asks to wait until it has read its storage. `refusal`: the text of any status but success. */
  private async startWatch(
    attempt: Attempt,
    silence: Silence,
  ): Promise<{ readonly response: Answer; readonly refusal?: string }> {
    const retries = this.retriesUntil(attempt.signal);
    // The time limit of the retries begins here; the watch itself may take longer.
    retries.nextAttempt();
    retries.end();
    for (let mayRenew = true; ; ) {
      silence.await(this.limits.wholeMilliseconds);
      const response = await this.send(attempt);
      const refusal = response.ok ? undefined : await response.text();
      silence.cancel();
      if (refusal === undefined) return { response };
      if (response.status === 401 && mayRenew && this.connection.credentials.renew()) {
        mayRenew = false;
        continue;
      }
      const pause = retryAfterMilliseconds(response) ?? missingRolesPause(response.status, refusal);
      if (pause === undefined || !retries.allow("wait", pause)) return { response, refusal };
      await retries.pause(pause);
    }
  }

  private lengthOfWatch(): number {
    const { shortest, longest } = WATCH_SECONDS;
    return shortest + Math.floor(this.random() * (longest - shortest));
  }

  private get random(): () => number {
    return this.means.random ?? Math.random;
  }

  private get timers(): Timers {
    return this.means.timers ?? SYSTEM_TIMERS;
  }

  private get limits(): Limits {
    return this.means.limits ?? LIMITS;
  }

  private retriesUntil(stop: AbortSignal): Retries {
    return new Retries(this.limits, this.means.elapsed, stop, this.timers, this.random);
  }

  private urlOf(path: string, query: Readonly<Record<string, string>> | undefined): string {
    const parameters = query === undefined ? "" : new URLSearchParams(query).toString();
    return this.server + path + (parameters === "" ? "" : `?${parameters}`);
  }

  private async send({ url, request, signal, protocol }: Attempt): Promise<Answer> {
    const { credentials, roots, cluster } = this.connection;
    const [presented, ca] = await Promise.all([credentials.current(), roots()]);
    const { method, body, contentType = "application/json", accept = "application/json" } = request;
    const response = await (this.means.fetch ?? fetch)(url, {
      method,
      signal,
      redirect: "manual",
      // Otherwise Bun closes a watch after minutes of silence.
      timeout: false,
      headers: {
        Accept: accept,
        "User-Agent": `${this.means.program ?? identity.product}/${VERSION}`,
        ...(presented.authorization === undefined ? {} : { Authorization: presented.authorization }),
        ...(body === undefined ? {} : { "Content-Type": contentType }),
      },
      ...(body === undefined ? {} : { body }),
      ...(cluster.proxyUrl === undefined ? {} : { proxy: cluster.proxyUrl }),
      ...(url.startsWith("https:") ? { protocol, tls: tlsOf(cluster, presented, ca) } : {}),
    });
    const failure = failureOfRedirect(response);
    if (failure === undefined) return response;
    await response.body?.cancel();
    throw failure;
  }

  /** Returns when the request may be repeated; throws otherwise. */
  private async recover(error: unknown, { request, protocol }: Attempt, retries: Retries): Promise<void> {
    if (error instanceof PluginError) throw error;
    const failure = failureOfConnection(error);
    const { cure, effect } = failure.diagnosis;
    if (cure === "HTTP/1.1" || isSilence(error)) this.protocol = "http1.1";
    if (cure === "HTTP/1.1" && protocol === "http2") return;
    const isHarmless = effect === "none" || request.method === "GET" || request.attempt === "retry";
    const mayRetry = isHarmless && request.attempt !== "once" && (cure === "moment" || cure === "wait");
    if (!mayRetry || !retries.allow(cure)) throw this.unavailable(await this.explain(failure));
    await retries.pause();
  }

  private async explain(error: unknown): Promise<KubeFailure> {
    const failure = failureOfConnection(error);
    if (!this.server.startsWith("https:") || failure.diagnosis.effect !== "none") return failure;
    const { explainFailure } = await import("./explain.ts");
    return explainFailure(failure, this.connection, this.means.now());
  }

  private unavailable(failure: KubeFailure): PluginError {
    return unavailable(failure, { server: this.server, kind: this.kind });
  }

  private async unauthorized(text: string): Promise<KubeResponse> {
    const { describeRefused } = await import("./explain.ts");
    return { status: 401, text, credentials: await describeRefused(this.connection, this.means.now()) };
  }
}

async function textOf(response: Answer, mostBytes: number | undefined): Promise<string> {
  if (mostBytes === undefined) return response.text();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? empty()) {
    size += chunk.length;
    if (size > mostBytes) throw failureOfSize(mostBytes);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** A signal that fires when nothing was heard for as long as was last said. */
class Silence {
  private readonly controller = new AbortController();
  private cancelTimer = () => {};

  constructor(private readonly timers: Timers) {}

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  await(milliseconds: number): void {
    this.cancel();
    const expire = () => this.controller.abort(new DOMException("Nothing was heard", "TimeoutError"));
    this.cancelTimer = this.timers.after(milliseconds, expire);
  }

  cancel(): void {
    this.cancelTimer();
  }
}

function tlsOf(cluster: Connection["cluster"], { cert, key }: Credentials, ca: string[] | undefined) {
  const { tlsServerName, skipsTlsVerification } = cluster;
  return {
    rejectUnauthorized: skipsTlsVerification === undefined,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...(tlsServerName === undefined ? {} : { serverName: tlsServerName }),
  };
}

async function* empty(): AsyncIterable<Uint8Array> {}
