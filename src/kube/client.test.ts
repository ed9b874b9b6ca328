import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeRoot, makeSigned } from "../../test/support/certificates.ts";
import { imitateApi, kubeconfigText, LIMITS, meansWith, withClient } from "../../test/support/imitated-api.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { SYSTEM_TIMERS } from "../timers.ts";
import type { KubeClient, KubeLines, WatchEvent } from "./api.ts";
import { openKubeClient } from "./client.ts";
import { mayHaveTakenEffect } from "./failure.ts";

const POD = { method: "GET", path: "/api/v1/namespaces/a/pods/b" } as const;

describe("KubeClient.request()", () => {
  test("sends path, query, body, token and user agent", async () => {
    using api = imitateApi(async (request) => new Response(await request.text(), { status: 201 }));
    const body = '{"n":12345678901234567890}';
    const response = await withClient({ apiRoot: api.url, token: "secret" }, (client) =>
      client.request({ method: "POST", path: "/api/v1/x", query: { dryRun: "All", a: "b c" }, body }),
    );

    expect(response).toMatchObject({ status: 201, text: body });
    expect(Math.abs(Date.parse(response.date ?? "") - Date.now())).toBeLessThan(10_000);
    const [sent] = api.requests;
    expect(sent?.url).toBe(`${api.url}/api/v1/x?dryRun=All&a=b+c`);
    expect(sent?.headers.get("authorization")).toBe("Bearer secret");
    expect(sent?.headers.get("content-type")).toBe("application/json");
    expect(sent?.headers.get("user-agent")).toStartWith(`${identity.product}/v`);
  });

  test("any status is a result", async () => {
    using api = imitateApi(() => new Response("gone", { status: 404 }));
    const response = await withClient({ apiRoot: api.url }, (client) => client.request(POD));
    expect(response).toMatchObject({ status: 404, text: "gone" });
  });

  test("sends it again if the server has just started and has not loaded its roles yet", async () => {
    const message =
      'ipamblocks.vendor.org "a" is forbidden: User "b" cannot get resource "ipamblocks" in API group "vendor.org" at the cluster scope: RBAC: [clusterrole.rbac.authorization.k8s.io "system:discovery" not found, clusterrole.rbac.authorization.k8s.io "own" not found]';
    using api = imitateApi((_, count) =>
      count < 3 ? new Response(JSON.stringify({ message }), { status: 403 }) : new Response("done"),
    );
    const response = await withClient({ apiRoot: api.url }, (client) =>
      client.request({ method: "POST", path: "/api/v1/x", body: "{}" }),
    );

    expect(response).toMatchObject({ status: 200, text: "done" });
  });

  test.each([
    ["of an account without a role", 'forbidden: User "a" cannot get resource "x"'],
    ["whose role does not exist", 'forbidden: RBAC: clusterrole.rbac.authorization.k8s.io "own" not found'],
  ])("does not send a request again %s", async (_, message) => {
    let requests = 0;
    using api = imitateApi(() => {
      requests += 1;
      return new Response(JSON.stringify({ message }), { status: 403 });
    });
    await withClient({ apiRoot: api.url }, (client) => client.request({ method: "GET", path: "/api/v1/x" }));

    expect(requests).toBe(1);
  });

  test.each([429, 503])("waits as Retry-After says, and sends it again (%d)", async (status) => {
    using api = imitateApi((_, count) =>
      count === 1 ? new Response("busy", { status, headers: { "Retry-After": "0.1" } }) : new Response("done"),
    );
    const start = performance.now();
    const response = await withClient({ apiRoot: api.url }, (client) =>
      client.request({ method: "POST", path: "/api/v1/x", body: "{}" }),
    );

    expect(response).toMatchObject({ status: 200, text: "done" });
    expect(performance.now() - start).toBeGreaterThan(95);
  });

  test.each([
    ["asks for a second", "1", 0, 1_000],
    ["asks for a second", "1", 0.999, 1_500],
    ["asks for nothing", undefined, 0, 25],
    ["asks for nothing", undefined, 0.999, 50],
  ])("clients do not come back at the same moment if the server %s (%p, %p)", async (_, asked, number, expected) => {
    const pauses: number[] = [];
    let count = 0;
    const fetch = async () => {
      count += 1;
      if (count > 1) return new Response("{}");
      if (asked === undefined) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
      return new Response("busy", { status: 429, headers: { "Retry-After": asked } });
    };
    const timers = {
      ...SYSTEM_TIMERS,
      after: (milliseconds: number, action: () => void) => {
        pauses.push(Math.round(milliseconds));
        return SYSTEM_TIMERS.after(0, action);
      },
    };
    const means = meansWith({ random: () => number, fetch, timers });
    await withClient({ apiRoot: "http://api" }, (client) => client.request(POD), means);

    expect(pauses).toEqual([expected]);
  });

  test("returns a 429 whose wait is longer than the time limit", async () => {
    using api = imitateApi(() => new Response("busy", { status: 429, headers: { "Retry-After": "60" } }));
    const response = await withClient({ apiRoot: api.url }, (client) => client.request(POD));
    expect(response).toMatchObject({ status: 429, text: "busy" });
    expect(api.requests).toHaveLength(1);
  });

  test("a GET without a response is sent again; a write is not, and may have taken effect", async () => {
    using api = imitateApi((_, count) => (count === 2 ? new Response("late") : new Promise<never>(() => {})));
    await withClient({ apiRoot: api.url }, async (client) => {
      expect(await client.request(POD)).toMatchObject({ status: 200, text: "late" });
      const failure = await rejectionOf(() => client.request({ method: "POST", path: "/api/v1/x", body: "{}" }));
      expect(failure).toMatchObject({ kind: "api-unavailable" });
      expect(failure.message).toContain('failed at stage "request": no response within the time limit');
      expect(mayHaveTakenEffect(failure)).toBe(true);
      expect(api.requests).toHaveLength(3);
    });
  });

  test("a write is sent again if the caller allows it", async () => {
    using api = imitateApi((_, count) => (count === 2 ? new Response("late") : new Promise<never>(() => {})));
    const response = await withClient({ apiRoot: api.url }, (client) =>
      client.request({ method: "PATCH", path: "/api/v1/x", body: "{}", attempt: "retry" }),
    );
    expect(response.text).toBe("late");
  });

  test("a refused connection names server and stage, and had no effect", async () => {
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: "https://127.0.0.1:1", token: "hidden-word" }, (client) =>
        client.request({ method: "POST", path: "/api/v1/x", body: "{}" }),
      ),
    );
    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(failure.message).toContain('"https://127.0.0.1:1" failed at stage "connect": the connection was refused');
    expect(mayHaveTakenEffect(failure)).toBe(false);
    expect(Bun.inspect(failure)).not.toContain("hidden-word");
  });

  test("the caller's signal ends it at once", async () => {
    using api = imitateApi(() => new Promise<never>(() => {}));
    const start = performance.now();
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: api.url }, (client) => client.request({ ...POD, signal: AbortSignal.timeout(50) })),
    );
    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(performance.now() - start).toBeLessThan(LIMITS.attemptMilliseconds);
  });

  test("a datastore's failures have its own kind", async () => {
    const means = meansWith({ unavailableAs: "datastore-unavailable" });
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: "http://127.0.0.1:1" }, (client) => client.request(POD), means),
    );
    expect(failure).toMatchObject({ kind: "datastore-unavailable" });
  });

  test.each([302, 307])("fails at once at a redirect (%d), which would carry the token elsewhere", async (status) => {
    using elsewhere = imitateApi(() => new Response("mine"));
    using api = imitateApi(() => Response.redirect(`${elsewhere.url}/login?secret=1`, status));
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: api.url, token: "t" }, (client) => client.request(POD)),
    );

    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(failure.message).toContain(
      `failed at stage "request": it redirects to "${elsewhere.url}/login" (${status})`,
    );
    expect([api.requests.length, elsewhere.requests.length]).toEqual([1, 0]);
  });

  test("reads a response up to the size that the request allows, and no further", async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const endless = new ReadableStream({
      pull: (stream) => stream.enqueue(new Uint8Array(65_536).fill(97)),
      cancel: () => end(),
    });
    using api = imitateApi((request) => (request.url.endsWith("/b") ? new Response(endless) : new Response("12345")));
    await withClient({ apiRoot: api.url }, async (client) => {
      const failure = await rejectionOf(() => client.request({ ...POD, mostBytes: 100_000 }));
      expect(failure.message).toContain("the response is larger than 100000 bytes");
      await ended;
      const other = { method: "GET", path: "/api/v1/namespaces/a/pods/c" } as const;
      expect((await client.request({ ...other, mostBytes: 5 })).text).toBe("12345");
      await expect(client.request({ ...other, mostBytes: 4 })).rejects.toThrow("larger than 4 bytes");
    });
    expect(api.requests).toHaveLength(3);
  });

  test("a redirect without a location fails at once too, and so does that of a watch", async () => {
    using api = imitateApi(() => new Response(null, { status: 301 }));
    await withClient({ apiRoot: api.url }, async (client) => {
      const failure = await rejectionOf(() => client.request(POD));
      expect(failure.message).toContain("it redirects to another address (301)");
      const events = client.watch(POD.path, {}, AbortSignal.timeout(10_000));
      expect((await rejectionOf(() => Array.fromAsync(events))).message).toContain("it redirects");
    });
    expect(api.requests).toHaveLength(2);
  });
});

describe("credentials of a KubeClient", () => {
  test("a token file is read again when it has been replaced", async () => {
    const directory = temporaryDirectory("kube");
    using api = imitateApi((request) => new Response(request.headers.get("authorization")));
    const file = join(directory.path, "token");
    await Bun.write(file, "first\n");
    await Bun.write(join(directory.path, "config"), kubeconfigText(api.url, { tokenFile: "token" }));
    await withClient({ kubeconfigs: [join(directory.path, "config")] }, async (client) => {
      expect((await client.request(POD)).text).toBe("Bearer first");
      await Bun.write(file, "the second\n");
      expect((await client.request(POD)).text).toBe("Bearer the second");
    });
  });

  test("the service account of the pod is used with the root of the API", async () => {
    const directory = temporaryDirectory("kube");
    using api = imitateApi((request) => new Response(request.headers.get("authorization")));
    await Bun.write(join(directory.path, "token"), "of-the-pod");
    const means = meansWith({ serviceAccountDirectory: directory.path });
    const response = await withClient({ apiRoot: api.url }, (client) => client.request(POD), means);
    expect(response.text).toBe("Bearer of-the-pod");
  });

  test("a rejected token file is read again at once", async () => {
    const directory = temporaryDirectory("kube");
    const file = join(directory.path, "token");
    await Bun.write(file, "old");
    using api = imitateApi(async (request, count) => {
      // Rotated while the request was on its way, by a file of the same size and time.
      if (count === 1) await Bun.write(file, "new");
      const isNew = request.headers.get("authorization") === "Bearer new";
      return new Response("{}", { status: isNew ? 200 : 401 });
    });
    await Bun.write(join(directory.path, "config"), kubeconfigText(api.url, { tokenFile: file }));
    await withClient({ kubeconfigs: [join(directory.path, "config")] }, async (client) => {
      expect(await client.request(POD)).toMatchObject({ status: 200 });
    });
    expect(api.requests).toHaveLength(2);
    directory.remove();
  });

  test("an exec plugin runs again after a rejection", async () => {
    const directory = temporaryDirectory("kube");
    const runs = join(directory.path, "runs");
    const credential =
      '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}';
    const script = `echo >> ${runs}; printf '${credential}' "$(wc -l < ${runs})"`;
    using api = imitateApi((request) => {
      const isSecond = request.headers.get("authorization") === "Bearer 2";
      return new Response("{}", { status: isSecond ? 200 : 401 });
    });
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "sh", args: ["-c", script] };
    await Bun.write(join(directory.path, "config"), kubeconfigText(api.url, { exec }));
    const means = meansWith({ environment: { PATH: "/usr/bin:/bin" } });
    const response = await withClient(
      { kubeconfigs: [join(directory.path, "config")] },
      (client) => client.request(POD),
      means,
    );
    expect(response).toMatchObject({ status: 200 });
    directory.remove();
  });

  test("in a pod, the API of its cluster needs no setting", async () => {
    using api = imitateApi(() => new Response("{}"));
    const { hostname, port } = new URL(api.url);
    const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    const failure = await rejectionOf(() =>
      withClient({}, (client) => client.request(POD), meansWith({ environment })),
    );
    // The imitation does not speak TLS, which the API of a cluster always does.
    expect(failure.message).toContain(`"https://${hostname}:${port}" failed`);
  });

  test("a config without any access says what to set", async () => {
    const failure = await rejectionOf(() => openKubeClient({}, meansWith()));
    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(failure.details).toContain('"kubernetes.kubeconfig"');
  });

  test("a missing kubeconfig is named", async () => {
    const failure = await rejectionOf(() => openKubeClient({ kubeconfigs: ["/nonexistent/config"] }, meansWith()));
    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(failure.message).toBe('Cannot read kubeconfig "/nonexistent/config": there is no such file');
  });

  test("of several kubeconfigs, those that do not exist are skipped", async () => {
    const directory = temporaryDirectory("kube");
    using api = imitateApi(() => new Response("ok"));
    const file = join(directory.path, "config");
    await Bun.write(file, kubeconfigText(api.url, {}));
    const access = { kubeconfigs: ["/nonexistent/config", file] };
    expect(await withClient(access, (client) => client.request(POD))).toMatchObject({ status: 200 });
    directory.remove();
  });

  test("a refused credential is named with its source", async () => {
    using api = imitateApi(() => new Response("{}", { status: 401 }));
    const response = await withClient({ apiRoot: api.url, token: "hidden-word" }, (client) => client.request(POD));
    expect(response).toMatchObject({ status: 401, credentials: "token of the network config" });
  });
});

describe("TLS of a KubeClient", () => {
  const directory = temporaryDirectory("kube");
  let root: ReturnType<typeof makeRoot>;
  let server: ReturnType<typeof makeSigned>;

  beforeAll(() => {
    root = makeRoot(directory.path, "root");
    server = makeSigned(directory.path, "server", root);
  });
  afterAll(() => directory.remove());

  test("trusts the given root, and uses HTTP/1.1 if the server has nothing else", async () => {
    using api = imitateApi(() => new Response("ok"), server);
    const access = { apiRoot: api.url, certificateAuthorityFile: root.cert };
    const texts = await withClient(access, (client) => Promise.all([client.request(POD), client.request(POD)]));
    expect(texts.map(({ text }) => text)).toEqual(["ok", "ok"]);
  });

  test("does not trust another root", async () => {
    using api = imitateApi(() => new Response("ok"), server);
    const other = makeRoot(directory.path, "other");
    const access = { apiRoot: api.url, certificateAuthorityFile: other.cert };
    const failure = await rejectionOf(() => withClient(access, (client) => client.request(POD)));
    expect(failure.message).toContain('failed at stage "TLS": the server\'s certificate is not signed by');
    expect(api.requests).toEqual([]);
  });

  test("skips verification only if the kubeconfig says so, and warns", async () => {
    using api = imitateApi(() => new Response("ok"), server);
    const warnings: string[] = [];
    const file = join(directory.path, "insecure");
    await Bun.write(file, kubeconfigText(api.url, {}, { "insecure-skip-tls-verify": true }));
    const means = meansWith({ warn: (message) => warnings.push(message) });
    await withClient(
      { kubeconfigs: [file] },
      async (client) => {
        await client.request(POD);
        await client.request(POD);
      },
      means,
    );
    expect(warnings).toEqual([expect.stringContaining("is not verified")]);
  });

  test("uses the proxy of the kubeconfig, with its password, and no other", async () => {
    using api = imitateApi(() => new Response("ok"), server);
    const seen: string[] = [];
    using proxy = startProxy(seen);
    const file = join(directory.path, "proxied");
    const cluster = {
      "certificate-authority": root.cert,
      "proxy-url": `http://me:hidden-word@127.0.0.1:${proxy.port}`,
    };
    await Bun.write(file, kubeconfigText(api.url, {}, cluster));
    const response = await withClient({ kubeconfigs: [file] }, (client) => client.request(POD));
    expect(response).toMatchObject({ status: 200 });
    const credentials = Buffer.from("me:hidden-word").toString("base64");
    expect(seen).toEqual([expect.stringContaining(`Basic ${credentials}`)]);
    expect(seen[0]).toStartWith(`CONNECT ${new URL(api.url).host} `);
  });

  test("verifies the name of tls-server-name", async () => {
    using api = imitateApi(() => new Response("ok"), server);
    const file = join(directory.path, "named");
    const cluster = { "certificate-authority": root.cert };
    await Bun.write(file, kubeconfigText(api.url, {}, { ...cluster, "tls-server-name": "localhost" }));
    expect(await withClient({ kubeconfigs: [file] }, (client) => client.request(POD))).toMatchObject({ status: 200 });

    await Bun.write(file, kubeconfigText(api.url, {}, { ...cluster, "tls-server-name": "other.example" }));
    const failure = await rejectionOf(() => withClient({ kubeconfigs: [file] }, (client) => client.request(POD)));
    expect(failure.message).toContain("not valid for this host name");
  });
});

describe("KubeLines.lines()", () => {
  const PATH = "/apis/flows.example.org/v1/flows";

  async function linesOf(apiRoot: string, work: (lines: AsyncIterable<string>) => Promise<void>): Promise<void> {
    const client: KubeLines = await openKubeClient({ apiRoot }, meansWith());
    await work(client.lines(PATH, { follow: "true" }, new AbortController().signal)).finally(() => client.close());
  }

  test("gives each line as soon as it is there, also one that comes in two parts", async () => {
    const { promise: isFirstRead, resolve } = Promise.withResolvers<void>();
    using api = imitateApi(() => {
      return new Response(
        (async function* () {
          yield new TextEncoder().encode('{"a":1}\n{"b"');
          await isFirstRead;
          yield new TextEncoder().encode(":2}\n");
        })(),
      );
    });
    const read: string[] = [];
    await linesOf(api.url, async (lines) => {
      for await (const line of lines) {
        read.push(line);
        resolve();
      }
    });

    expect(read).toEqual(['{"a":1}', '{"b":2}']);
    expect(api.requests[0]?.url).toBe(`${api.url}${PATH}?follow=true`);
  });

  test("throws the refusal of the server, with the permission that is missing", async () => {
    const message = 'flows is forbidden: User "a" cannot list resource "flows"';
    using api = imitateApi(() => new Response(JSON.stringify({ kind: "Status", message }), { status: 403 }));
    const failure = await rejectionOf(() => linesOf(api.url, async (lines) => void (await Array.fromAsync(lines))));

    expect(String(failure)).toContain(message);
    expect(failure).toMatchObject({
      kind: "api-unavailable",
      details: expect.stringContaining('resources: ["flows"]'),
    });
  });

  test("throws if the connection breaks, and ends quietly if the caller stops", async () => {
    using api = imitateApi(
      () =>
        new Response(
          (async function* () {
            yield new TextEncoder().encode("1\n");
            await new Promise(() => {});
          })(),
        ),
    );
    const stop = new AbortController();
    const client: KubeLines = await openKubeClient({ apiRoot: api.url }, meansWith());
    const read: string[] = [];
    for await (const line of client.lines(PATH, {}, stop.signal)) {
      read.push(line);
      stop.abort();
    }
    expect(read).toEqual(["1"]);

    const broken = () =>
      linesOf(api.url, async (lines) => {
        for await (const _ of lines) api[Symbol.dispose]();
      });
    expect(await rejectionOf(broken)).toMatchObject({ kind: "api-unavailable" });
    await client.close();
  });
});

describe("KubeClient.watch()", () => {
  const EVENTS = '{"type":"ADDED","object":{"n":12345678901234567890}}\n{"type":"BOOKMARK","object":{}}\n';
  /** A watch that the server keeps. */
  const kept = () => new Response(new ReadableStream({ start: (to) => to.enqueue(EVENTS) }));
  const untilBookmark = async (client: KubeClient, query: Readonly<Record<string, string>> = {}) => {
    const stop = new AbortController();
    const events: WatchEvent[] = [];
    for await (const event of client.watch("/api/v1/pods", query, stop.signal)) {
      events.push(event);
      if (event.type === "BOOKMARK") stop.abort();
    }
    return events;
  };

  test("returns events with their objects as text", async () => {
    using api = imitateApi(kept);
    const events = await withClient({ apiRoot: api.url }, (client) => untilBookmark(client, { resourceVersion: "5" }));
    expect(events).toEqual([
      { type: "OPENED", text: "{}" },
      { type: "ADDED", text: '{"n":12345678901234567890}' },
      { type: "BOOKMARK", text: "{}" },
    ]);
    const [sent] = api.requests;
    expect(Object.fromEntries(new URL(sent?.url ?? "").searchParams)).toMatchObject({
      watch: "1",
      resourceVersion: "5",
    });
  });

  test.each([
    [0, "300"],
    [0.5, "450"],
    [0.999, "599"],
  ])("each has another length (random number %p)", async (number, expected) => {
    using api = imitateApi(kept);
    await withClient({ apiRoot: api.url }, untilBookmark, meansWith({ random: () => number }));
    expect(new URL(api.requests[0]?.url ?? "").searchParams.get("timeoutSeconds")).toBe(expected);
  });

  test("history that is gone is an event", async () => {
    using api = imitateApi(() => new Response('{"code":410}', { status: 410 }));
    const events = await withClient({ apiRoot: api.url }, (client) =>
      Array.fromAsync(client.watch("/api/v1/pods", {}, new AbortController().signal)),
    );
    expect(events).toEqual([{ type: "ERROR", text: '{"code":410}' }]);
  });

  test.each([429, 503])("waits as Retry-After says, and starts it again (%d)", async (status) => {
    using api = imitateApi((_, count) =>
      count < 3 ? new Response("starting", { status, headers: { "Retry-After": "0" } }) : kept(),
    );
    const events = await withClient({ apiRoot: api.url }, untilBookmark);
    expect(events.map(({ type }) => type)).toEqual(["OPENED", "ADDED", "BOOKMARK"]);
  });

  test("waits for a server that has not loaded its roles yet", async () => {
    const message = 'RBAC: clusterrole.rbac.authorization.k8s.io "system:discovery" not found';
    using api = imitateApi((_, count) =>
      count < 3 ? new Response(JSON.stringify({ message }), { status: 403 }) : kept(),
    );
    const events = await withClient({ apiRoot: api.url }, untilBookmark);
    expect(events.map(({ type }) => type)).toEqual(["OPENED", "ADDED", "BOOKMARK"]);
  });

  test("reads a rejected token file again at once, and only once", async () => {
    using directory = disposableDirectory();
    const file = join(directory.path, "token");
    await Bun.write(file, "old");
    using api = imitateApi(async (request, count) => {
      if (count === 1) await Bun.write(file, "new");
      const isNew = request.headers.get("authorization") === "Bearer new";
      return isNew && count < 3 ? kept() : new Response("{}", { status: 401 });
    });
    await Bun.write(join(directory.path, "config"), kubeconfigText(api.url, { tokenFile: file }));
    const watch = () => withClient({ kubeconfigs: [join(directory.path, "config")] }, untilBookmark);
    expect((await watch()).map(({ type }) => type)).toEqual(["OPENED", "ADDED", "BOOKMARK"]);
    expect((await rejectionOf(watch)).message).toContain("(401 Unauthorized)");
    expect(api.requests).toHaveLength(4);
  });

  test("a refusal names the missing permission", async () => {
    using api = imitateApi(() => new Response('{"message":"no"}', { status: 403 }));
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: api.url }, (client) =>
        Array.fromAsync(client.watch("/api/v1/pods", {}, new AbortController().signal)),
      ),
    );
    expect(failure.message).toStartWith("Cannot watch pods: the role lacks the permission to watch pods");
  });

  test.each([
    ["without an event", ""],
    ["after some events", EVENTS],
  ])("one that the server ends at once, %s, has failed", async (_, body) => {
    using api = imitateApi(() => new Response(body));
    const failure = await rejectionOf(() =>
      withClient({ apiRoot: api.url }, (client) =>
        Array.fromAsync(client.watch("/api/v1/pods", {}, new AbortController().signal)),
      ),
    );
    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(failure.message).toContain("the server ended the watch at once");
  });

  test("one that ends at once with an error has no other failure", async () => {
    using api = imitateApi(() => new Response('{"type":"ERROR","object":{"code":410}}\n'));
    const events = await withClient({ apiRoot: api.url }, (client) =>
      Array.fromAsync(client.watch("/api/v1/pods", {}, new AbortController().signal)),
    );
    expect(events.map(({ type }) => type)).toEqual(["OPENED", "ERROR"]);
  });

  test("one that ends without an event after a while is over, not failed", async () => {
    using api = imitateApi(() => new Response(""));
    let time = 0;
    const events = await withClient(
      { apiRoot: api.url },
      (client) => Array.fromAsync(client.watch("/api/v1/pods", {}, new AbortController().signal)),
      meansWith({ elapsed: () => (time += 5_000) }),
    );
    expect(events).toEqual([{ type: "OPENED", text: "{}" }]);
  });

  test("the signal ends it", async () => {
    using api = imitateApi(kept);
    const events = await withClient({ apiRoot: api.url }, untilBookmark);
    expect(events.map(({ type }) => type)).toEqual(["OPENED", "ADDED", "BOOKMARK"]);
  });
});

function disposableDirectory() {
  const { path, remove } = temporaryDirectory("kube");
  return { path, [Symbol.dispose]: () => remove() };
}

/** A proxy that only forwards bytes after CONNECT; `seen` gets the heads of the requests. */
function startProxy(seen: string[]): { readonly port: number; [Symbol.dispose](): void } {
  type Peer = { target?: Bun.Socket<undefined> };
  const listener = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = {};
      },
      async data(socket, bytes) {
        if (socket.data.target) return void socket.data.target.write(bytes);
        const head = bytes.toString();
        seen.push(head);
        const [hostname = "", port] = (head.split(" ")[1] ?? "").split(":");
        const forward = { data: (_: unknown, back: Buffer) => void socket.write(back), close: () => void socket.end() };
        socket.data.target = await Bun.connect({ hostname, port: Number(port), socket: forward });
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
      },
      close: (socket) => void socket.data.target?.end(),
    },
  });
  return { port: listener.port, [Symbol.dispose]: () => listener.stop(true) };
}
