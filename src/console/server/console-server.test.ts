import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { ManualClock, timersOn } from "../../../test/support/manual-clock.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { PluginError } from "../../errors.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { aborted } from "../../timers.ts";
import type { Health } from "../api/health.ts";
import type { PolicyDraft } from "../api/policy-draft.ts";
import { type ConsoleSource, TokenRefused } from "../source.ts";
import { type ConsoleOptions, ConsoleServer } from "./console-server.ts";
import { SESSION_LIMITS } from "./sessions.ts";
import { STREAM_LIMITS } from "./streams.ts";

/** No JSON web token: nothing would recognize it by its form. */
const TOKEN = "a-token-that-nobody-else-knows";
const COOKIE = "__Host-console";
const MINUTE = 60_000;
const HEALTH: Health = { at: 1, state: "ok", parts: [], nodes: [], problems: [], hidden: [] };

/** What the reader's source does, as each test changes it. */
class FakeSource implements ConsoleSource {
  readonly user = "anna";
  rightsNow = "everything";
  /** What fails with what. */
  readonly failures = new Map<string, unknown>();
  isClosed = false;
  ended = 0;
  asked: unknown;

  async rights(): Promise<string> {
    this.failIn("rights");
    return this.rightsNow;
  }

  async health(): Promise<Health> {
    this.failIn("health");
    return HEALTH;
  }

  async *flows(query: object, follow: boolean, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    this.asked = query;
    this.failIn("flows");
    try {
      yield { problem: { message: "first\u202e" } };
      if (!follow) return;
      await aborted(signal);
    } finally {
      this.ended += 1;
    }
  }

  async *explanation(): AsyncIterable<FlowAnswer> {}

  async pools(signal: AbortSignal) {
    this.failIn("pools");
    this.asked = "pools";
    if (this.failures.has("wait")) await aborted(signal);
    return { at: 1, pools: [], problems: [], hidden: [] };
  }

  async *poolMap() {
    yield { block: { cidr: "10.0.0.0/26", free: 1 } };
  }

  async address(address: string) {
    return { address, use: "." } as const;
  }

  async draft(id: string): Promise<PolicyDraft> {
    return { yaml: id, notes: [], verdict: "allowed", command: "" };
  }

  async applyDraft(_id: string, draft: unknown) {
    this.asked = draft;
    return { applied: [] };
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  private failIn(what: string): void {
    if (this.failures.has(what)) throw this.failures.get(what);
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

interface Asked {
  readonly method?: string;
  readonly headers?: Headers;
  readonly body?: string;
}

let clock: ManualClock;
let server: ConsoleServer;
let sources: FakeSource[];
let logged: string[];
let openSource: ConsoleOptions["openSource"];

async function start(more: Partial<ConsoleOptions> = {}): Promise<void> {
  server?.close();
  server = new ConsoleServer({
    page: {
      html: "<!doctype html><title>console</title>",
      assets: new Map([["main-1.js", { type: "text/javascript", body: "let here;".repeat(100) }]]),
    },
    openSource: (token, signal) => openSource(token, signal),
    about: { product: "vendor", version: "1", mode: "cluster", writable: true },
    cookie: () => COOKIE,
    isOwnHost: (name, port) => name === "127.0.0.1" && port === server.port,
    log: (message) => logged.push(message),
    clock,
    timers: timersOn(clock),
    now: () => 1_000_000 + clock.now(),
    ...more,
  });
  await server.listen("127.0.0.1", 0);
}

beforeEach(async () => {
  clock = new ManualClock();
  sources = [];
  logged = [];
  openSource = async (token) => {
    if (token !== TOKEN) throw new TokenRefused(`Cannot log in: the API server does not accept the token ${token}`);
    const source = new FakeSource();
    sources.push(source);
    return source;
  };
  await start();
});
afterEach(() => server.close());

function opened(path: string, { method = "GET", headers = {}, body }: Asked = {}): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const asked = httpRequest(
    {
      host: "127.0.0.1",
      port: server.port,
      path,
      method,
      agent: false,
      headers: { ...headers } as IncomingHttpHeaders,
    },
    resolve,
  );
  asked.on("error", reject);
  asked.end(body);
  return promise;
}

async function textOf(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts);
}

async function ask(path: string, asked?: Asked): Promise<Answer> {
  const response = await opened(path, asked);
  return { status: response.statusCode ?? 0, headers: response.headers, text: (await textOf(response)).toString() };
}

function logIn(token = TOKEN, headers: Headers = {}): Promise<Answer> {
  return ask("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ token }),
  });
}

/** The headers of every request of the page. */
async function loggedIn(): Promise<{ readonly cookie: string; readonly "x-csrf-token": string }> {
  const { headers, text } = await logIn();
  return { cookie: headers["set-cookie"]?.[0]?.split(";")[0] ?? "", "x-csrf-token": JSON.parse(text).csrfToken };
}

function onlySource(): FakeSource {
  const [source] = sources;
  if (source === undefined) throw new Error("nobody has logged in");
  return source;
}

interface Followed {
  readonly status: number;
  readonly lines: readonly string[];
  readonly ended: Promise<void>;
  leave(): void;
}

async function follow(path: string, headers: Headers): Promise<Followed> {
  const response = await opened(path, { headers });
  const lines: string[] = [];
  const ended = (async () => {
    let rest = "";
    for await (const part of response) {
      const all = (rest + part).split("\n");
      rest = all.pop() ?? "";
      lines.push(...all);
    }
  })();
  ended.catch(() => {});
  return { status: response.statusCode ?? 0, lines, ended, leave: () => void response.destroy() };
}

const FLOWS = "/api/flows?follow=true";
const QUESTIONS = [
  ["GET", "/api/session"],
  ["GET", "/api/health?once=true"],
  ["GET", FLOWS],
  ["GET", "/api/explanation?id=1"],
  ["GET", "/api/pools"],
  ["GET", "/api/pools/main"],
  ["GET", "/api/addresses/10.0.0.1"],
  ["GET", "/api/flows/1/draft"],
  ["POST", "/api/flows/1/draft"],
  ["POST", "/api/logout"],
] as const;

describe("the page", () => {
  test("is sent with a policy that loads nothing from elsewhere and is shown in no frame", async () => {
    const { status, headers, text } = await ask("/");

    expect([status, text]).toEqual([200, "<!doctype html><title>console</title>"]);
    const policy = String(headers["content-security-policy"]);
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"])
      expect(policy.split("; ")).toContain(part);
    for (const part of ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
      expect(policy.split("; ")).toContain(part);
    expect(policy).not.toContain("unsafe");
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(headers["set-cookie"]).toBeUndefined();
  });

  test("has assets that browsers keep, compressed if they can read that", async () => {
    const { headers } = await ask("/assets/main-1.js");
    expect(headers["cache-control"]).toContain("immutable");
    const response = await opened("/assets/main-1.js", { headers: { "accept-encoding": "br, gzip" } });
    expect(response.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(await textOf(response)).toString()).toBe("let here;".repeat(100));
  });

  test.each(["/assets/other.js", "/favicon.ico", "/assets/../main-1.js", "/api", "/healthz"])(
    "is all there is: %s is not found",
    async (path) => {
      expect((await ask(path)).status).toBe(404);
    },
  );

  test("is opened by a link on any page, but not in a frame of it", async () => {
    const from = (destination: string, mode: string, site = "cross-site") => ({
      headers: { "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination },
    });
    expect((await ask("/", from("document", "navigate"))).status).toBe(200);
    for (const frame of ["iframe", "frame", "object", "embed"])
      for (const site of ["cross-site", "same-site", "same-origin"])
        expect((await ask("/", from(frame, "navigate", site))).status).toBe(403);
    expect((await ask("/", from("empty", "cors"))).status).toBe(403);
    expect((await ask("/assets/main-1.js", from("script", "no-cors"))).status).toBe(403);
  });
});

describe("a request", () => {
  test.each([
    ["another name", { host: "evil.example" }],
    ["another name with the port", () => ({ host: `evil.example:${server.port}` })],
    ["a name that begins as its own", () => ({ host: `127.0.0.1.evil.example:${server.port}` })],
    ["another port", { host: "127.0.0.1:1" }],
    ["what is no name", () => ({ host: `evil@127.0.0.1:${server.port}` })],
  ] as const)("for %s is not answered, not even with the page", async (_title, given) => {
    const headers = typeof given === "function" ? given() : given;
    const session = await loggedIn();
    expect((await ask("/", { headers })).status).toBe(421);
    expect((await ask("/api/pools", { headers: { ...session, ...headers } })).status).toBe(421);
    expect((await logIn(TOKEN, headers)).status).toBe(421);
  });

  test("with two hosts, or for a path that is an address, is not answered", async () => {
    const own = `Host: 127.0.0.1:${server.port}`;
    expect(await raw(`GET / HTTP/1.1\r\n${own}\r\n${own}\r\n\r\n`)).toStartWith("HTTP/1.1 400 ");
    for (const none of ["", "Host:\r\n"])
      expect(await raw(`GET / HTTP/1.1\r\n${none}\r\n`)).toStartWith("HTTP/1.1 421 ");
    expect(await raw(`GET http://evil.example/ HTTP/1.1\r\n${own}\r\n\r\n`)).toStartWith("HTTP/1.1 400 ");
    expect(await raw(`GET //evil.example/ HTTP/1.1\r\n${own}\r\n\r\n`)).toStartWith("HTTP/1.1 400 ");
  });

  test.each(["https://evil.example", "null", "http://127.0.0.1:1"])(
    "of a page of %s is refused, whatever it has",
    async (origin) => {
      const session = await loggedIn();
      for (const [method, path] of QUESTIONS)
        expect((await ask(path, { method, headers: { ...session, origin } })).status).toBe(403);
      expect((await logIn(TOKEN, { origin })).status).toBe(403);
      expect((await ask("/", { headers: { origin } })).status).toBe(403);
    },
  );

  test("of the page itself is answered", async () => {
    const session = await loggedIn();
    const origin = `http://127.0.0.1:${server.port}`;
    const headers = { ...session, origin, "sec-fetch-site": "same-origin" };
    expect((await ask("/api/pools", { headers })).status).toBe(200);
  });

  test.each(["cross-site", "same-site", "none"])("that the browser calls %s is refused", async (site) => {
    const session = await loggedIn();
    const fetched = { "sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    for (const [method, path] of QUESTIONS)
      expect((await ask(path, { method, headers: { ...session, ...fetched } })).status).toBe(403);
    expect((await logIn(TOKEN, fetched)).status).toBe(403);
  });

  test("for a WebSocket is refused", async () => {
    const session = await loggedIn();
    const headers = { ...session, upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13" };
    expect((await ask(FLOWS, { headers })).status).toBe(400);
  });

  test.each(QUESTIONS)("%s %s needs the cookie", async (method, path) => {
    const { cookie: _, ...others } = await loggedIn();
    for (const headers of [others, { ...others, cookie: `${COOKIE}=${"x".repeat(43)}` }, { ...others, cookie: "x" }]) {
      const { status, text } = await ask(path, { method, headers });
      expect([status, JSON.parse(text).mode]).toEqual([401, "cluster"]);
    }
    expect(onlySource().asked).toBeUndefined();
  });

  test.each(QUESTIONS)("%s %s needs the CSRF token too", async (method, path) => {
    const session = await loggedIn();
    const other = await loggedIn();
    for (const token of [undefined, "", "x", other["x-csrf-token"]]) {
      const headers = { cookie: session.cookie, ...(token === undefined ? {} : { "x-csrf-token": token }) };
      expect((await ask(path, { method, headers })).status).toBe(403);
    }
    expect(sources.map(({ asked }) => asked)).toEqual([undefined, undefined]);
    expect((await ask("/api/session", { headers: session })).status).toBe(200);
  });

  test("with a body that is too long is refused, whatever it says about its length", async () => {
    const long = JSON.stringify({ token: "x".repeat(70_000) });
    const type = { "content-type": "application/json" };
    const plain = { method: "POST", body: long, headers: type };
    expect((await ask("/api/login", plain)).status).toBe(413);
    const chunked = { ...type, "transfer-encoding": "chunked" };
    expect((await ask("/api/login", { ...plain, headers: chunked })).status).toBe(413);
    expect(sources).toEqual([]);
  });

  test("with a head that is too long is refused", async () => {
    const head = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nX: ${"x".repeat(20_000)}\r\n\r\n`;
    expect(await raw(head)).not.toStartWith("HTTP/1.1 200 ");
  });

  test("of a form is not read", async () => {
    const form = { method: "POST", body: `{"token":"${TOKEN}"}`, headers: { "content-type": "text/plain" } };
    expect((await ask("/api/login", form)).status).toBe(415);
  });

  test("with another method is refused", async () => {
    const headers = await loggedIn();
    for (const method of ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
      expect((await ask("/api/pools", { method, headers })).status).toBe(405);
    for (const path of ["/api/pools", "/api/health"])
      expect((await ask(path, { method: "POST", headers })).status).toBe(405);
    for (const path of ["/api/login", "/api/logout"]) expect((await ask(path, { headers })).status).toBe(405);
  });

  test("behind another one, before that is answered, loses the connection of both", async () => {
    const { cookie, ...others } = await loggedIn();
    const head = Object.entries({ ...others, cookie, host: `127.0.0.1:${server.port}` })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    const closed = Promise.withResolvers<void>();
    const socket = connect(server.port, "127.0.0.1", () => socket.write(`GET ${FLOWS} HTTP/1.1\r\n${head}\r\n`));
    socket.once("data", () => socket.write(`GET / HTTP/1.1\r\n${head}\r\n`));
    socket.once("close", () => closed.resolve());
    await closed.promise;
    await pollUntil(() => onlySource().ended === 1, "the end of the source");
  });

  test("after another one uses the same connection", async () => {
    const get = `GET /assets/main-1.js HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`;
    let answers = 0;
    const socket = connect(server.port, "127.0.0.1", () => socket.write(get));
    socket.on("data", (bytes) => {
      answers += bytes.toString().split("HTTP/1.1 200").length - 1;
      if (answers < 3) socket.write(get);
    });
    await pollUntil(() => answers === 3, "three answers");
    socket.destroy();
  });

  test("that never ends loses its connection", async () => {
    const closed = Promise.withResolvers<void>();
    const socket = connect(server.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHo"));
    socket.once("close", () => closed.resolve());
    // The limit is one of real time.
    await closed.promise;
  }, 20_000);
});

/** Sent as it is; the beginning of the answer. */
function raw(text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(server.port, "127.0.0.1", () => void socket.write(text));
  socket.once("data", (bytes) => {
    resolve(bytes.toString());
    socket.destroy();
  });
  socket.once("close", () => resolve(""));
  socket.once("error", reject);
  return promise;
}

describe("a login", () => {
  test("gives a cookie that scripts and other sites do not get, and says who it is", async () => {
    const { status, headers, text } = await logIn();

    expect(status).toBe(200);
    expect(headers["set-cookie"]?.[0]).toMatch(
      /^__Host-console=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    expect(JSON.parse(text)).toEqual({
      ...{ product: "vendor", version: "1", mode: "cluster", writable: true, user: "anna" },
      csrfToken: expect.stringMatching(/^[\w-]{43}$/),
      expires: 1_000_000 + SESSION_LIMITS.longestMilliseconds,
      idleMilliseconds: SESSION_LIMITS.idleMilliseconds,
    });
  });

  test("is another session each time", async () => {
    const [one, other] = [await loggedIn(), await loggedIn()];
    expect(one.cookie).not.toBe(other.cookie);
    expect(one["x-csrf-token"]).not.toBe(other["x-csrf-token"]);
  });

  test("with a wrong token is refused", async () => {
    const { status, headers, text } = await logIn("wrong");
    expect([status, headers["set-cookie"]]).toEqual([401, undefined]);
    expect(JSON.parse(text)).toEqual({
      message: "Cannot log in: the API server does not accept the token [redacted]",
      remedy: expect.stringContaining("kubectl create token"),
      mode: "cluster",
    });
  });

  test.each(["", "with space", "line\r\nX-Header: 1", "ü", "x".repeat(20_000)])(
    "with what cannot be a token does not reach the API server",
    async (token) => {
      let asked = 0;
      openSource = async () => {
        asked += 1;
        return new FakeSource();
      };
      expect([(await logIn(token)).status, asked]).toEqual([401, 0]);
    },
  );

  test("is refused for a while after many wrong ones, also with the right token", async () => {
    for (let attempt = 0; attempt < 20; attempt++) expect((await logIn(`wrong-${attempt}`)).status).toBe(401);
    const { status, headers } = await logIn();
    expect([status, headers["retry-after"]]).toEqual([429, "10"]);
    await clock.advance(MINUTE);

    expect((await logIn()).status).toBe(200);
  });

  test("waits for few others at the same time", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    openSource = async () => {
      await promise;
      return new FakeSource();
    };
    const logins = Array.from({ length: 10 }, (_, index) => logIn(`token-${index}`));
    await Promise.any(logins.map(async (login) => expect((await login).status).toBe(429)));
    resolve();
    const statuses = (await Promise.all(logins)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(4);
    expect(statuses.filter((status) => status === 429)).toHaveLength(6);
  });

  test("of a reader with many sessions ends the oldest one", async () => {
    const first = await loggedIn();
    for (let more = 0; more < SESSION_LIMITS.mostOfUser - 1; more++) await loggedIn();
    expect((await ask("/api/pools", { headers: first })).status).toBe(200);
    const last = await loggedIn();

    expect((await ask("/api/pools", { headers: first })).status).toBe(401);
    expect((await ask("/api/pools", { headers: last })).status).toBe(200);
    expect(sources.map(({ isClosed }) => isClosed)).toEqual([true, ...Array(SESSION_LIMITS.mostOfUser).fill(false)]);
  });

  test("is refused if there are too many sessions", async () => {
    await start({ sessionLimits: { ...SESSION_LIMITS, most: 1 } });
    await loggedIn();
    expect((await logIn()).status).toBe(503);
    expect(sources.map(({ isClosed }) => isClosed)).toEqual([false, true]);
  });
});

describe("a session", () => {
  test("ends when it was not used for half an hour", async () => {
    const headers = await loggedIn();
    for (let use = 0; use < 4; use++) {
      await clock.advance(29 * MINUTE);
      expect((await ask("/api/pools", { headers })).status).toBe(200);
    }
    await clock.advance(30 * MINUTE);
    expect((await ask("/api/pools", { headers })).status).toBe(401);
    expect(onlySource().isClosed).toBe(true);
  });

  test("is not used by requests that nobody asked for", async () => {
    const headers = { ...(await loggedIn()), "x-unattended": "1" };
    await clock.advance(29 * MINUTE);
    expect((await ask("/api/pools", { headers })).status).toBe(200);
    await clock.advance(MINUTE);
    expect((await ask("/api/pools", { headers })).status).toBe(401);
  });

  test("ends after eight hours, however much it is used, with its streams", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    for (let quarters = 1; quarters < 32; quarters++) {
      await clock.advance(15 * MINUTE);
      expect((await ask("/api/pools", { headers })).status).toBe(200);
    }
    await clock.advance(15 * MINUTE);
    await stream.ended;
    expect((await ask("/api/pools", { headers })).status).toBe(401);
    expect(JSON.parse(stream.lines.at(-1) ?? "")).toMatchObject({ refused: { status: 401 } });
  });

  test("that is not used ends also while a stream is open", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    for (let minutes = 0; minutes < 30; minutes++) await clock.advance(MINUTE);
    await stream.ended;
    expect(JSON.parse(stream.lines.at(-1) ?? "")).toMatchObject({ refused: { status: 401 } });
    expect((await ask("/api/pools", { headers })).status).toBe(401);
  });

  test("ends with a logout, with all its streams and requests, and no other one", async () => {
    const [headers, other] = [await loggedIn(), await loggedIn()];
    const [stream, others] = [await follow(FLOWS, headers), await follow(FLOWS, other)];
    onlySource().failures.set("wait", true);
    const waiting = ask("/api/pools", { headers });
    const out = await ask("/api/logout", { method: "POST", headers });
    await stream.ended;

    expect([out.status, out.headers["set-cookie"]?.[0]]).toEqual([200, expect.stringContaining("Max-Age=0")]);
    expect((await waiting).status).toBe(401);
    expect(JSON.parse(stream.lines.at(-1) ?? "")).toEqual({
      refused: { status: 401, message: "The session has ended: you have logged out", remedy: "Log in again" },
    });
    expect((await ask("/api/pools", { headers })).status).toBe(401);
    expect(onlySource().isClosed).toBe(true);
    expect((await ask("/api/pools", { headers: other })).status).toBe(200);
    others.leave();
  });

  test("ends when the API server does not accept its token any more", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    const refused = () => requireOk({ status: 401, text: "Unauthorized" }, { method: "GET", path: "/api/v1/pods" });
    onlySource().failures.set("pools", thrownBy(refused));
    expect((await ask("/api/pools", { headers })).status).toBe(401);
    await stream.ended;
    onlySource().failures.clear();
    expect((await ask("/api/pools", { headers })).status).toBe(401);
  });

  test("has a limited number of requests at the same time", async () => {
    await start({ sessionLimits: { ...SESSION_LIMITS, mostRequests: 3 } });
    const headers = await loggedIn();
    onlySource().failures.set("wait", true);
    const answers = Array.from({ length: 4 }, () => ask("/api/pools", { headers }));
    expect((await Promise.race(answers)).status).toBe(429);
    await ask("/api/logout", { method: "POST", headers });
    server.close();
    await Promise.allSettled(answers);
  });

  test("waits a limited time for an answer", async () => {
    const headers = await loggedIn();
    onlySource().failures.set("wait", true);
    const answer = ask("/api/pools", { headers });
    await pollUntil(() => onlySource().asked === "pools", "the question");
    await clock.advance(MINUTE);
    expect((await answer).status).toBe(504);
  });
});

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (failure) {
    return failure;
  }
  throw new Error("nothing was thrown");
}

describe("a stream", () => {
  test("is sent line by line, and its source ends when the reader leaves", async () => {
    const headers = await loggedIn();
    const stream = await follow("/api/flows?follow=true&verdict=denied", headers);
    await pollUntil(() => stream.lines.length === 1, "a line");
    expect(stream.lines[0]).not.toMatch(/\p{Cf}/u);
    expect(JSON.parse(stream.lines[0] ?? "")).toEqual({ problem: { message: "first\u202e" } });
    expect(onlySource().asked).toEqual({ verdict: "denied" });
    stream.leave();
    await pollUntil(() => onlySource().ended === 1, "the end of the source");
  });

  test("ends when what the reader may see changes; another one is asked for with the new rights", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    await clock.advance(STREAM_LIMITS.reviewMilliseconds);
    onlySource().rightsNow = "less";
    await clock.advance(STREAM_LIMITS.reviewMilliseconds - 1);
    expect(onlySource().ended).toBe(0);
    await clock.advance(1);
    await stream.ended;

    expect(JSON.parse(stream.lines.at(-1) ?? "")).toMatchObject({ refused: { status: 409 } });
    await pollUntil(() => onlySource().ended === 1, "the end of the source");
    const next = await follow(FLOWS, headers);
    await clock.advance(STREAM_LIMITS.reviewMilliseconds);
    expect([next.status, onlySource().ended]).toEqual([200, 1]);
    next.leave();
  });

  test.each([
    ["the token is refused", new TokenRefused("Cannot go on: the token has expired"), 401],
    ["the API server does not say", new PluginError("api-unavailable", "Cannot ask: no answer"), 503],
  ] as const)("ends when %s", async (_title, failure, status) => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    onlySource().failures.set("rights", failure);
    await clock.advance(STREAM_LIMITS.reviewMilliseconds);
    await stream.ended;

    expect(JSON.parse(stream.lines.at(-1) ?? "")).toMatchObject({ refused: { status } });
    expect((await ask("/api/pools", { headers })).status).toBe(status === 401 ? 401 : 200);
  });

  test("ends when the API server does not answer the question about rights", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    onlySource().rights = () => new Promise(() => {});
    await clock.advance(STREAM_LIMITS.reviewMilliseconds);
    await clock.advance(15_000);
    await stream.ended;
    expect(JSON.parse(stream.lines.at(-1) ?? "")).toMatchObject({ refused: { status: 503 } });
  });

  test("is refused before it begins with the API server's own words", async () => {
    const headers = await loggedIn();
    const text = JSON.stringify({ kind: "Status", message: 'User "anna" cannot list flows' });
    onlySource().failures.set(
      "flows",
      thrownBy(() => requireOk({ status: 403, text }, { method: "GET", path: "/apis/flows.example/v1/flows" })),
    );
    const { status, text: answer } = await ask(FLOWS, { headers });
    expect([status, JSON.parse(answer).message]).toEqual([
      403,
      expect.stringContaining('User "anna" cannot list flows'),
    ]);
  });

  test("is one of few of a session, and of a limited number of all", async () => {
    await start({ streamLimits: { ...STREAM_LIMITS, mostOfSession: 2, most: 3 } });
    const [headers, other] = [await loggedIn(), await loggedIn()];
    const streams = [await follow(FLOWS, headers), await follow("/api/health", headers)];
    expect((await ask(FLOWS, { headers })).status).toBe(429);
    streams.push(await follow(FLOWS, other));
    expect((await ask(FLOWS, { headers: other })).status).toBe(503);
    expect((await ask("/api/health?once=true", { headers })).status).toBe(200);
    streams[0]?.leave();
    await pollUntil(() => onlySource().ended === 1, "the end of the source");
    await pollUntil(async () => (await follow(FLOWS, headers)).status === 200, "a place for a stream");
    for (const stream of streams) stream.leave();
  });

  test("says now and then that it is alive", async () => {
    const headers = await loggedIn();
    const stream = await follow(FLOWS, headers);
    await pollUntil(() => stream.lines.length === 1, "a line");
    await clock.advance(15_000);
    await clock.advance(15_000);
    await pollUntil(() => stream.lines.includes(""), "a line");
    stream.leave();
  });

  test("of health is sent again when it has changed, and now and then", async () => {
    const headers = await loggedIn();
    const stream = await follow("/api/health", headers);
    await pollUntil(() => stream.lines.length === 1, "a line");
    onlySource().health = async () => ({ ...HEALTH, at: 2 });
    await clock.advance(5_000);
    await clock.advance(5_000);
    expect(stream.lines.filter((line) => line !== "")).toHaveLength(1);
    onlySource().health = async () => ({ ...HEALTH, at: 3, state: "failed" });
    await clock.advance(5_000);
    await pollUntil(() => stream.lines.filter((line) => line !== "").length === 2, "a line");
    for (let seconds = 0; seconds < 30; seconds += 5) await clock.advance(5_000);
    await pollUntil(() => stream.lines.filter((line) => line !== "").length === 3, "a line");
    stream.leave();
  });
});

describe("answers", () => {
  test("are those of the source", async () => {
    const headers = await loggedIn();
    const json = async (path: string) => JSON.parse((await ask(path, { headers })).text);
    expect(await json("/api/addresses/fd00%3A%3A1")).toEqual({ address: "fd00::1", use: "." });
    expect(await json("/api/flows/7a1c/draft")).toMatchObject({ yaml: "7a1c" });
    expect(await json("/api/pools/main")).toEqual({ block: { cidr: "10.0.0.0/26", free: 1 } });
    expect(await json("/api/health?once=true")).toEqual(HEALTH);
    const answer = await ask("/api/pools", { headers });
    expect(answer.headers).toMatchObject({
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("default-src 'none'"),
    });
  });

  test.each([
    ["/api/flows?verdict=maybe", 400],
    ["/api/flows?since=1&since=2", 400],
    ["/api/explanation", 400],
    ["/api/explanation?id=1", 404],
    ["/api/health?once=maybe", 400],
    ["/api/pools/%ff", 400],
    ["/api/other", 404],
    ["/api/pools/main/more", 404],
    ["/api/flows/1", 404],
  ])("to %s are refused", async (path, status) => {
    const headers = await loggedIn();
    const answer = await ask(path, { headers });
    expect([answer.status, JSON.parse(answer.text).message]).toEqual([status, expect.any(String)]);
  });

  test("to a posted draft are those of the source, unless the console is read-only", async () => {
    const draft = { yaml: "kind: NetworkPolicy", notes: [], verdict: "allowed", command: "apply" };
    const post = async (body: object) => {
      const headers = { ...(await loggedIn()), "content-type": "application/json" };
      return (await ask("/api/flows/1/draft", { method: "POST", headers, body: JSON.stringify(body) })).status;
    };
    expect([await post(draft), onlySource().asked]).toEqual([200, draft]);
    expect(await post({ yaml: 1 })).toBe(400);
    sources.length = 0;
    await start({ about: { product: "vendor", version: "1", mode: "host", writable: false } });
    expect([await post(draft), onlySource().asked]).toEqual([403, undefined]);
  });

  test("never contain the token, nor does the log", async () => {
    const answers = [await logIn(), await logIn(`${TOKEN}-wrong`)];
    const headers = { ...(await loggedIn()), "content-type": "application/json" };
    const failures = [
      new Error(`broken with ${TOKEN}`),
      new PluginError("api-unavailable", `Cannot ask with ${TOKEN}`, { details: `use another than ${TOKEN}` }),
      new PluginError("internal", `Cannot ask with ${TOKEN}`),
    ];
    for (const [index, failure] of failures.entries()) {
      sources.at(-1)?.failures.set("pools", failure).set("flows", failure);
      answers.push(await ask("/api/pools", { headers }), await ask(FLOWS, { headers }));
      openSource = async () => {
        throw failure;
      };
      await clock.advance(index);
      answers.push(await logIn());
    }
    answers.push(await ask("/api/login", { method: "POST", headers, body: `{"token": "${TOKEN}` }));
    answers.push(await ask(`/api/${TOKEN}`, { headers: { ...headers, host: "evil" } }));

    expect(answers.map(({ status }) => status)).toEqual([
      200, 401, 500, 500, 500, 503, 503, 503, 500, 500, 500, 400, 421,
    ]);
    for (const { text, headers: sent } of answers) expect(text + JSON.stringify(sent)).not.toContain(TOKEN);
    const ofFailures = logged.filter((message) => message.startsWith("Cannot answer: "));
    expect(ofFailures).toEqual([
      ...Array(3).fill("Cannot answer: broken with [redacted]"),
      ...Array(3).fill("Cannot answer: Cannot ask with [redacted]"),
    ]);
    expect(logged.join("\n")).not.toContain(TOKEN);
    expect(logged.join("\n")).toContain("anna has logged in from this host");
  });
});
