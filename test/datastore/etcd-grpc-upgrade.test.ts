/** The switch from etcd's gateway to gRPC in a long-running process: with a real server, behind a proxy that records and interrupts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createSecureServer, type OutgoingHttpHeaders } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Datastore, Entry } from "../../src/datastore/datastore.ts";
import { type EtcdOptions, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { GrpcTransport } from "../../src/datastore/etcd/grpc.ts";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { countRequests, type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";
import { pollUntil } from "../support/poll.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { startProxy } from "../support/unreliable-proxy.ts";

const HTTP2 = "PRI * HTTP/2.0";
const GATEWAY = "POST /v3/kv/txn";
/** The only protocol offered by ALPN, with its lengths. */
const HTTP2_OVER_TLS = "\0\u{3}\u{2}h2";

const NOTHING = { comparisons: [], success: [], failure: [] };

describe.skipIf(!hasEtcd)(`gRPC instead of the gateway${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startEtcd();
  });
  afterAll(() => cluster.stop());

  const serverPort = () => Number(new URL(cluster.endpoints[0] ?? "").port);
  const openAt = (endpoint: string, options: EtcdOptions = {}) =>
    openEtcd({ source: { kind: "endpoints", endpoints: [endpoint] } }, { upgradesToGrpc: true, ...options });

  test("serves the first request by the gateway and the following ones by gRPC", async () => {
    await using wire = await startWire(serverPort());
    const store = await openAt(wire.endpoint);
    await store.read([]);
    // A server that responds late is asked again.
    expect(wire.count(GATEWAY)).toBeGreaterThanOrEqual(1);

    await untilTakenOver(store, wire);
    const before = wire.count(GATEWAY);
    for (let time = 0; time < 5; time++) await store.commit([{ kind: "put", key: "/taken", value: `${time}` }]);
    expect(wire.count(GATEWAY)).toBe(before);
    expect(wire.count(HTTP2)).toBe(1);
    expect((await store.read([{ kind: "key", key: "/taken" }])).answers[0]?.[0]?.value).toBe("4");
    await store.close();
  });

  test("stays with the gateway if gRPC was not requested", async () => {
    await using wire = await startWire(serverPort());
    const store = await openEtcd({ source: { kind: "endpoints", endpoints: [wire.endpoint] } });
    for (let time = 0; time < 5; time++) await store.read([]);

    expect([wire.count(GATEWAY), wire.count(HTTP2)]).toEqual([5, 0]);
    await store.close();
  });

  test("stays with the gateway, without endless attempts, if the server does not speak HTTP/2", async () => {
    await using wire = await startWire(serverPort(), { refuses: HTTP2 });
    const store = await openAt(wire.endpoint);
    await store.read([]);
    await pollUntil(() => wire.count(HTTP2) === 1, "one attempt at HTTP/2");
    for (let time = 0; time < 10; time++) await store.read([]);

    expect([wire.count(GATEWAY), wire.count(HTTP2)]).toEqual([11, 1]);
    await store.close();
  });

  test("falls back to the gateway when the connection is lost, and reconnects", async () => {
    await using wire = await startWire(serverPort());
    const store = await openAt(wire.endpoint);
    await untilTakenOver(store, wire);
    wire.cut();
    for (const value of ["a", "b", "c"])
      expect((await store.commit([{ kind: "put", key: "/cut", value }])).ok).toBe(true);

    await untilTakenOver(store, wire);
    expect(wire.count(HTTP2)).toBe(2);
    await store.close();
  });

  test("abandons a silent connection, and commits once", async () => {
    await using wire = await startWire(serverPort());
    const store = await openAt(wire.endpoint, { limits: { firstAttemptMilliseconds: 200 } });
    await untilTakenOver(store, wire);
    await store.commit([{ kind: "create", key: "/silent", value: "0" }]);
    const [entry] = (await store.read([{ kind: "key", key: "/silent" }])).answers[0] ?? [];
    wire.freeze();
    const { revision } = entry as Entry;
    const written = await store.commit([{ kind: "update", key: "/silent", value: "1", revision }]);

    expect(written.ok).toBe(true);
    expect(JSON.parse(etcdctl(cluster.endpoints[0] ?? "", ["get", "/silent", "-w", "json"])).kvs[0].version).toBe(2);
    await store.close();
  });

  test("does not end the requests beside one that timed out: the server may only be slow", async () => {
    await using wire = await startWire(serverPort());
    const { grpc, ask, impatient, patient } = await askersOn(wire);
    wire.hold();
    const [first, second] = [ask(impatient), ask(patient)];
    impatient.abort();
    await expect(first).rejects.toMatchObject({ diagnosis: { effect: "unknown" } });
    expect(grpc.isConnected(wire.endpoint)).toBe(false);
    wire.release();

    expect((await second).succeeded).toBe(true);
    await ask(patient);
    expect(wire.count(HTTP2)).toBe(2);
    grpc.close();
  });

  test("ends the requests on a connection that no longer responds to a ping", async () => {
    await using wire = await startWire(serverPort());
    const { grpc, ask, impatient, patient } = await askersOn(wire);
    wire.freeze();
    const asked = [ask(impatient), ask(patient)];
    impatient.abort();

    for (const each of asked) await expect(each).rejects.toMatchObject({ diagnosis: { effect: "unknown" } });
    await pollUntil(() => wire.connections() === 0, "the end of the connection");
    grpc.close();
  });

  test("sends nothing of a request that was aborted before", async () => {
    const [url = ""] = cluster.endpoints;
    const grpc = new GrpcTransport({});
    const ask = (signal: AbortSignal) => grpc.transact({ url, token: undefined, signal }, NOTHING);
    const before = await countRequests(url);
    await ask(new AbortController().signal);
    await expect(ask(AbortSignal.abort())).rejects.toThrow("no response within the time limit");
    await ask(new AbortController().signal);
    const after = await countRequests(url);

    expect((after["Txn"] ?? 0) - (before["Txn"] ?? 0)).toBe(2);
    expect(grpc.isConnected(url)).toBe(true);
    grpc.close();
  });

  test("waits for the server's settings only within its time limit, and leaves no connection behind", async () => {
    await using wire = await startWire(serverPort());
    wire.hold();
    const grpc = new GrpcTransport({});
    const stop = new AbortController();
    const connected = grpc.connect(wire.endpoint, stop.signal);
    await pollUntil(() => wire.count(HTTP2) === 1, "an attempt at HTTP/2");
    stop.abort();

    await expect(connected).rejects.toThrow();
    await pollUntil(() => wire.connections() === 0, "the end of the connection");
  });

  test("ends a watch with the signal, whether or not a consumer is waiting", async () => {
    const [url = ""] = cluster.endpoints;
    const watches = async () => /^etcd_debugging_mvcc_watch_stream_total (\d+)$/m.exec(await metricsOf(url))?.[1];
    const before = await watches();
    const grpc = new GrpcTransport({});
    const stop = new AbortController();
    const request = { key: "/watched", startRevision: "1" };
    const answers = grpc.watch({ url, token: undefined, signal: stop.signal }, request)[Symbol.asyncIterator]();
    expect((await answers.next()).value.created).toBe(true);
    expect(await watches()).not.toBe(before);
    stop.abort();

    await pollUntil(async () => (await watches()) === before, "the end of the watch");
    expect(grpc.isConnected(url)).toBe(true);
    grpc.close();
  });

  test("makes the same requests as the gateway", async () => {
    const [endpoint = ""] = cluster.endpoints;
    await using wire = await startWire(serverPort());
    const store = await openAt(wire.endpoint);
    await untilTakenOver(store, wire);
    const before = await countRequests(endpoint);
    for (const value of ["a", "b"]) await store.commit([{ kind: "put", key: "/counted", value }]);
    await store.read([{ kind: "prefix", prefix: "/" }]);
    const after = await countRequests(endpoint);
    await store.close();

    expect((after["Txn"] ?? 0) - (before["Txn"] ?? 0)).toBe(3);
  });

  test("reports etcd's own errors with their text", async () => {
    await using wire = await startWire(serverPort());
    const store = await openAt(wire.endpoint);
    await untilTakenOver(store, wire);
    const value = "x".repeat(1_700_000);

    expect(store.commit([{ kind: "put", key: "/large", value }])).rejects.toThrow(/request is too large/);
    await store.close();
  });

  test("loses no increment, and makes none twice, whatever the connection loses", async () => {
    const proxy = await startProxy(serverPort());
    const store = await openAt(`http://127.0.0.1:${proxy.port}`);
    await store.commit([{ kind: "create", key: "/counter", value: "0" }]);
    for (let count = 0; count < 20; count++) {
      const entry = (await store.read([{ kind: "key", key: "/counter" }])).answers[0]?.[0] as Entry;
      proxy.loseNext(count % 2 === 0 ? "answer" : "request");
      const value = String(Number(entry.value) + 1);
      const written = await store.commit([{ kind: "update", key: "/counter", value, revision: entry.revision }]);
      expect(written.ok).toBe(true);
    }
    await store.close();
    await proxy.stop();

    const answer = JSON.parse(etcdctl(cluster.endpoints[0] ?? "", ["get", "/counter", "-w", "json"]));
    expect(answer.kvs[0]).toMatchObject({ value: Buffer.from("20").toString("base64"), version: 21 });
  });

  test.each([
    ["only HTTP/1", undefined],
    ["no gRPC, as it reports itself,", { "grpc-status": "12", "grpc-message": "no route" }],
  ])("returns to the gateway where a proxy speaks HTTP/2 and passes on %s to etcd", async (_, refusal) => {
    await using proxy = await startSecureProxy(cluster.endpoints[0] ?? "", refusal);
    const source = { kind: "endpoints", endpoints: [proxy.endpoint] } as const;
    const store = await openEtcd({ source, caCertFile: proxy.caCertFile }, { upgradesToGrpc: true });
    await store.read([]);
    await pollUntil(async () => {
      expect((await store.commit([{ kind: "put", key: "/proxied", value: "x" }])).ok).toBe(true);
      return proxy.refused() > 0;
    }, "a request by gRPC");
    for (let time = 0; time < 5; time++) await store.read([]);

    expect(proxy.refused()).toBe(1);
    await store.close();
  });

  test("also upgrades with TLS and a client certificate", async () => {
    const directory = temporaryDirectory("etcd-grpc-upgrade");
    const root = makeRoot(directory.path, "root-ca");
    const server = makeSigned(directory.path, "server", root);
    const client = makeSigned(directory.path, "client", root);
    const secured = await startEtcd({ tls: { ...server, clientCa: root.cert } });
    const wire = await startWire(Number(new URL(secured.endpoints[0] ?? "").port));
    const source = { kind: "endpoints", endpoints: [wire.endpoint.replace("http:", "https:")] } as const;
    const paths = { caCertFile: root.cert, certFile: client.cert, keyFile: client.key };
    const store = await openEtcd({ source, ...paths }, { upgradesToGrpc: true });
    // The traffic is encrypted, but the connection that negotiated HTTP/2 now carries much more of it.
    const put = (value: string) => store.commit([{ kind: "put", key: "/secured", value }]);
    await put("small");
    await pollUntil(() => wire.carried(HTTP2_OVER_TLS) > 0, "a connection that asks for HTTP/2");
    await pollUntil(async () => {
      expect((await put("x".repeat(100_000))).ok).toBe(true);
      return wire.carried(HTTP2_OVER_TLS) > 100_000;
    }, "a large value by gRPC");
    await store.close();
    await wire[Symbol.asyncDispose]();
    await secured.stop();
    directory.remove();
  });
});

const metricsOf = async (endpoint: string) => (await fetch(`${endpoint}/metrics`)).text();

/** One request that will be aborted and one that will not, on a connection that has responded. */
async function askersOn({ endpoint: url }: Wire) {
  const grpc = new GrpcTransport({});
  const [impatient, patient] = [new AbortController(), new AbortController()];
  const ask = ({ signal }: AbortController) => grpc.transact({ url, token: undefined, signal }, NOTHING);
  await ask(patient);
  return { grpc, ask, impatient, patient };
}

/** Sends requests until one does not use the gateway. */
async function untilTakenOver(store: Datastore, wire: Wire): Promise<void> {
  await pollUntil(async () => {
    const before = wire.count(GATEWAY);
    await store.read([]);
    return wire.count(GATEWAY) === before;
  }, "a request by gRPC");
}

interface Wire extends AsyncDisposable {
  readonly endpoint: string;
  /** How often the client sent the text. */
  count(text: string): number;
  /** The number of open client connections. */
  connections(): number;
  /** The number of bytes that clients sent on connections that carried the text. */
  carried(text: string): number;
  /** Closes all connections. */
  cut(): void;
  /** Drops all traffic of the open connections; new ones work. */
  freeze(): void;
  /** Holds back all traffic until it is released. */
  hold(): void;
  release(): void;
}

/** A TCP proxy to a server on loopback that records the traffic. */
async function startWire(target: number, { refuses }: { readonly refuses?: string } = {}): Promise<Wire> {
  const said = new Map<Socket, string>();
  const open = new Set<Socket>();
  const frozen = new Set<Socket>();
  let held: (() => void)[] | undefined;
  const carry = (from: Socket, write: () => void) => {
    if (held) held.push(write);
    else if (!frozen.has(from)) write();
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => open.delete(socket));
    }
    client.on("data", (data) => {
      said.set(client, (said.get(client) ?? "") + data.toString("latin1"));
      if (refuses !== undefined && data.includes(refuses)) client.destroy();
      else carry(client, () => upstream.write(data));
    });
    upstream.on("data", (data) => carry(upstream, () => client.write(data)));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: (text) => [...said.values()].join().split(text).length - 1,
    connections: () => [...said.keys()].filter((client) => open.has(client)).length,
    carried: (text) => [...said.values()].filter((each) => each.includes(text)).join("").length,
    cut,
    freeze: () => {
      for (const socket of open) frozen.add(socket);
    },
    hold: () => {
      held = [];
    },
    release: () => {
      const late = held ?? [];
      held = undefined;
      for (const write of late) write();
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface SecureProxy extends AsyncDisposable {
  readonly endpoint: string;
  readonly caCertFile: string;
  /** The number of HTTP/2 requests that found no handler. */
  refused(): number;
}

/** Speaks HTTP/1 and HTTP/2, and forwards by HTTP/1; or responds to HTTP/2 requests itself. */
async function startSecureProxy(target: string, refusal?: OutgoingHttpHeaders): Promise<SecureProxy> {
  const directory = temporaryDirectory("etcd-proxy");
  const root = makeRoot(directory.path, "root-ca");
  const { cert, key } = makeSigned(directory.path, "proxy", root);
  let refused = 0;
  const options = { cert: readFileSync(cert), key: readFileSync(key), allowHTTP1: true };
  const server = createSecureServer(options, async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const isHttp2 = request.httpVersionMajor === 2;
    if (isHttp2) refused += 1;
    if (isHttp2 && refusal) {
      response.writeHead(200, refusal).end();
      return;
    }
    const answer = await fetch(target + request.url, { method: "POST", body: Buffer.concat(chunks) });
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caCertFile: root.cert,
    refused: () => refused,
    [Symbol.asyncDispose]: async () => {
      server.close();
      directory.remove();
    },
  };
}
