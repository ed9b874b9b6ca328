import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { type Certificate, makeRoot, makeSigned } from "../../test/support/certificates.ts";
import { freePorts } from "../../test/support/etcd.ts";
import { ManualClock, timersOn } from "../../test/support/manual-clock.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { openKubeClient } from "../kube/client.ts";
import { consoleSettings, runConsole } from "./console-process.ts";

const TOKEN = "the-token-of-anna";
const OWN_TOKEN = "the-token-of-the-pod";

const folder = temporaryDirectory("console-process");
const account = join(folder.path, "account");
const shown = { cert: join(folder.path, "tls.crt"), key: join(folder.path, "tls.key") };
let root: Certificate;
let api: Bun.Server<undefined>;
/** What the API server was sent, by whom. */
let asked: { readonly path: string; readonly authorization: string | null }[];
let clock: ManualClock;
let logged: string[];
let port: number;
let healthPort: number;
let stop: AbortController;
let ended: Promise<void>;

beforeAll(() => {
  root = makeRoot(folder.path, "root");
  const own = makeSigned(folder.path, "api", root);
  mkdirSync(account);
  writeFileSync(join(account, "ca.crt"), readFileSync(root.cert));
  // As a pod has it whose account is mounted after all.
  writeFileSync(join(account, "token"), OWN_TOKEN);
  api = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    tls: { cert: readFileSync(own.cert, "utf8"), key: readFileSync(own.key, "utf8") },
    fetch: (request) => {
      const authorization = request.headers.get("authorization");
      asked.push({ path: new URL(request.url).pathname, authorization });
      if (authorization !== `Bearer ${TOKEN}`) return new Response("Unauthorized", { status: 401 });
      if (request.url.endsWith("selfsubjectreviews"))
        return Response.json({ status: { userInfo: { username: "anna", groups: [] } } }, { status: 201 });
      const message = 'User "anna" cannot do that';
      return Response.json({ kind: "Status", reason: "Forbidden", message, code: 403 }, { status: 403 });
    },
  });
});
afterAll(async () => {
  await api.stop(true);
  folder.remove();
});

beforeEach(async () => {
  [asked, logged, clock, stop] = [[], [], new ManualClock(), new AbortController()];
  [port = 0, healthPort = 0] = await freePorts(2);
  show(makeSigned(folder.path, "first", root, { names: ["DNS:Console.example.org", "IP:10.0.0.9"] }));
  ended = start();
  await pollUntil(() => logged.length > 0, "the console");
});
afterEach(async () => {
  stop.abort();
  await ended;
});

/** As the kubelet replaces the files of a Secret. */
function show({ cert, key }: Certificate): void {
  for (const [from, to] of [
    [cert, shown.cert],
    [key, shown.key],
  ] as const) {
    writeFileSync(`${to}.new`, readFileSync(from));
    renameSync(`${to}.new`, to);
  }
}

function environmentOf(more: Readonly<Record<string, string>> = {}) {
  return {
    KUBERNETES_SERVICE_HOST: "127.0.0.1",
    KUBERNETES_SERVICE_PORT: String(api.port),
    DATASTORE_TYPE: "kubernetes",
    CONSOLE_PORT: String(port),
    HEALTH_PORT: String(healthPort),
    TLS_CERT_FILE: shown.cert,
    TLS_KEY_FILE: shown.key,
    ...more,
  };
}

function start(): Promise<void> {
  const environment = environmentOf();
  const means = { environment, warn: (message: string) => void logged.push(message), now: () => new Date() };
  return runConsole({
    environment,
    page: { html: "<!doctype html>", assets: new Map() },
    openClient: (access) =>
      openKubeClient(access, { ...means, elapsed: () => performance.now(), serviceAccountDirectory: account }),
    openDatastore: () => Promise.reject(new Error("there is none")),
    signal: stop.signal,
    now: () => new Date(),
    clock,
    timers: timersOn(clock),
    log: (message) => logged.push(message),
  });
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Who has the certificate. */
  readonly organization: unknown;
}

async function ask(path: string, more: { method?: string; headers?: IncomingHttpHeaders; body?: string } = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { method = "GET", headers = {}, body } = more;
  const options = { host: "127.0.0.1", port, path, method, headers, ca: readFileSync(root.cert) };
  httpsRequest({ ...options, servername: "localhost", agent: false }, resolve)
    .on("error", reject)
    .end(body);
  const response = await promise;
  const socket = response.socket as unknown as { getPeerCertificate(): { subject: { O: string } } };
  const organization = socket.getPeerCertificate().subject.O;
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return { status: response.statusCode ?? 0, headers: response.headers, text, organization } satisfies Answer;
}

function logIn(token = TOKEN): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  return ask("/api/login", { method: "POST", headers, body: JSON.stringify({ token }) });
}

describe("runConsole()", () => {
  test("asks the API server with the token of the reader, never with that of its pod", async () => {
    const { status, headers, text } = await logIn();
    expect([status, JSON.parse(text)]).toMatchObject([200, { mode: "cluster", user: "anna", product: identity.title }]);
    const [cookie] = headers["set-cookie"] ?? [];
    expect(cookie).toStartWith(`__Host-${identity.console}=`);
    const session = { cookie: cookie?.split(";")[0] ?? "", "x-csrf-token": JSON.parse(text).csrfToken };
    for (const path of ["/api/health?once=true", "/api/pools", "/api/flows"]) await ask(path, { headers: session });

    expect(asked.length).toBeGreaterThan(3);
    expect(new Set(asked.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${TOKEN}`]));
    expect(logged.join("\n")).not.toContain(TOKEN);
  });

  test("lets nobody in with a token that the API server refuses", async () => {
    expect((await logIn("the-token-of-nobody")).status).toBe(401);
    expect((await logIn(OWN_TOKEN)).status).toBe(401);
  });

  test("answers to the names of its certificate and of loopback, at any port, and to no other", async () => {
    const statusFor = async (host: string) => (await ask("/", { headers: { host } })).status;
    for (const host of ["console.example.org", "CONSOLE.example.org:8443", "10.0.0.9", "localhost:1", "[::1]:8443"])
      expect([host, await statusFor(host)]).toEqual([host, 200]);
    for (const host of ["example.org", "10.0.0.8", "www.console.example.org", "127.0.0.2"])
      expect([host, await statusFor(host)]).toEqual([host, 421]);
  });

  test("goes on with a renewed certificate and its names, and with the last one that is whole", async () => {
    expect((await ask("/")).organization).toBe("first");
    const second = makeSigned(folder.path, "second", root, { names: ["DNS:other.example.org"] });
    const { text, headers } = await logIn();
    const session = {
      cookie: headers["set-cookie"]?.[0]?.split(";")[0] ?? "",
      "x-csrf-token": JSON.parse(text).csrfToken,
    };
    show({ ...second, key: shown.key });
    await clock.advance(10_000);
    await pollUntil(() => logged.some((message) => message.includes("that of another certificate")), "a warning");
    expect((await ask("/")).organization).toBe("first");
    show(second);
    await clock.advance(10_000);
    await pollUntil(async () => (await ask("/")).organization === "second", "the renewed certificate");

    const statusFor = async (host: string) => (await ask("/", { headers: { host } })).status;
    expect([await statusFor("other.example.org"), await statusFor("console.example.org")]).toEqual([200, 421]);
    expect((await ask("/api/session", { headers: session })).status).toBe(200);
  });

  test("serves its health without a question", async () => {
    const health = () => fetch(`http://127.0.0.1:${healthPort}/healthz`);
    expect(await (await health()).text()).toBe("ok\n");
    expect((await fetch(`http://127.0.0.1:${healthPort}/api/session`)).status).toBe(404);
  });
});

describe("consoleSettings()", () => {
  test.each([
    ["no API", { KUBERNETES_SERVICE_HOST: "" }, "KUBERNETES_SERVICE_HOST"],
    ["the datastore of one host", { DATASTORE_TYPE: "embedded" }, "DATASTORE_TYPE"],
    ["a port that is none", { CONSOLE_PORT: "https" }, "CONSOLE_PORT"],
    ...[
      "prometheus:9090",
      "a/b",
      "a/b:web",
      "a/b:0",
      "a/b:65536",
      "a/../x:1",
      "a/b:1/c",
      "a:b/c:1",
      "http://a/b:1",
    ].map((text) => [`the Service ${text}`, { ALERTS_SERVICE: text }, "ALERTS_SERVICE"] as const),
  ])("refuses %s, and says which variable to set", (_title, more, variable) => {
    const failure = thrownBy(() => consoleSettings(environmentOf(more)));
    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(`${failure.message} ${failure.details}`).toContain(variable);
  });

  test("asks no Prometheus unless it is named", () => {
    const alertsOf = (ALERTS_SERVICE: string) => consoleSettings(environmentOf({ ALERTS_SERVICE })).alerts;
    expect(alertsOf("")).toBeUndefined();
    expect(alertsOf("monitoring/prometheus-k8s:9090")).toEqual({
      ...{ namespace: "monitoring", service: "prometheus-k8s", port: 9090 },
    });
  });
});
