import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EtcdOptions, type EtcdSettings, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { type Certificate, makeRoot, makeSigned } from "../support/certificates.ts";
import { type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

type Paths = Omit<EtcdSettings, "source">;

/** The result of a read at the endpoint: "ok", or the failure. */
async function tryRead(endpoints: readonly string[], paths: Paths, options: EtcdOptions = {}): Promise<unknown> {
  const store = await openEtcd({ source: { kind: "endpoints", endpoints }, ...paths }, options);
  try {
    await store.read([]);
    return "ok";
  } catch (error) {
    return error;
  } finally {
    await store.close();
  }
}

function atStage(stage: string): unknown {
  return expect.objectContaining({
    kind: "datastore-unavailable",
    message: expect.stringContaining(`failed at stage "${stage}"`),
  });
}

for (const gateway of ["on", "off"] as const) {
  describe.skipIf(!hasEtcd)(`etcd over TLS, gateway ${gateway}${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
    let directory: TemporaryDirectory;
    let first: Certificate;
    let second: Certificate;
    let foreign: Certificate;
    let client: Certificate;
    let clusters: readonly EtcdCluster[] = [];

    beforeAll(async () => {
      directory = temporaryDirectory("etcd-tls");
      const root = (name: string) => makeRoot(directory.path, name);
      [first, second, foreign] = [root("first"), root("second"), root("foreign")];
      client = makeSigned(directory.path, "client", first);
      const start = (issuer: Certificate, name: string) =>
        startEtcd({ gateway, tls: { ...makeSigned(directory.path, name, issuer), clientCa: first.cert } });
      // The second server does not accept its own certificate from clients: its gateway hangs, gRPC works.
      clusters = await Promise.all([start(first, "server-1"), start(second, "server-2"), start(foreign, "server-3")]);
    });
    afterAll(async () => {
      await Promise.all(clusters.map((cluster) => cluster.stop()));
      directory.remove();
    });

    const bothRoots = () => {
      const path = join(directory.path, "both.crt");
      writeFileSync(path, readFileSync(first.cert, "utf8") + readFileSync(second.cert, "utf8"));
      return path;
    };
    const withClient = (caCertFile: string): Paths => ({ caCertFile, certFile: client.cert, keyFile: client.key });

    test("trusts a server signed by either root of a CA file, and no other", async () => {
      const outcomes = await Promise.all(
        clusters.map((cluster) => tryRead(cluster.endpoints, withClient(bothRoots()))),
      );

      expect(outcomes).toEqual(["ok", "ok", atStage("TLS")]);
    });

    test("does not trust a root that the CA file lacks", async () => {
      expect(await tryRead(clusters[1]?.endpoints ?? [], withClient(first.cert))).toEqual(atStage("TLS"));
    });

    test("reports stage TLS and the reason if the client's files do not belong together or are not PEM", async () => {
      const endpoints = clusters[0]?.endpoints ?? [];
      const own = withClient(first.cert);

      const mismatched = await tryRead(endpoints, { ...own, keyFile: second.key });
      expect(mismatched).toEqual(atStage("TLS"));
      expect(String(mismatched)).toContain("the key does not belong to the certificate");
      expect(await tryRead(endpoints, { ...own, certFile: client.key, keyFile: client.cert })).toEqual(atStage("TLS"));
      const broken = join(directory.path, "broken.crt");
      writeFileSync(broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
      expect(await tryRead(endpoints, { ...own, caCertFile: broken })).toEqual(atStage("TLS"));
    });

    test("reports stage TLS if the server rejects a client without a certificate, or with a foreign one", async () => {
      const stranger = makeSigned(directory.path, "stranger", foreign);
      const endpoints = clusters[0]?.endpoints ?? [];

      expect(await tryRead(endpoints, { caCertFile: first.cert })).toEqual(atStage("TLS"));
      const strangerPaths = { caCertFile: first.cert, certFile: stranger.cert, keyFile: stranger.key };
      expect(await tryRead(endpoints, strangerPaths)).toEqual(atStage("TLS"));
    });

    test("suggests to check the scheme if the address has the wrong one", async () => {
      const plain = (clusters[0]?.endpoints ?? []).map((endpoint) => endpoint.replace("https:", "http:"));
      const outcome = await tryRead(plain, {}, { limits: { firstAttemptMilliseconds: 300, wholeMilliseconds: 300 } });

      expect(outcome).toEqual(atStage("request"));
      expect(outcome).toMatchObject({ details: expect.stringContaining("https") });
    });

    test("reports stage TLS if there is neither a gateway nor HTTP/2", async () => {
      const { cert, key } = makeSigned(directory.path, "web", first);
      const tls = { cert: Bun.file(cert), key: Bun.file(key) };
      using web = Bun.serve({ port: 0, tls, fetch: () => new Response("not here", { status: 404 }) });

      expect(await tryRead([`https://localhost:${web.port}`], withClient(first.cert))).toEqual(atStage("TLS"));
    });

    test("also connects by host name", async () => {
      const named = (clusters[0]?.endpoints ?? []).map((endpoint) => endpoint.replace("127.0.0.1", "localhost"));

      expect(await tryRead(named, withClient(first.cert))).toBe("ok");
    });

    test("names the certificate file that cannot be read or contains no certificate", async () => {
      const missing = openEtcd({
        source: { kind: "endpoints", endpoints: ["https://127.0.0.1:1"] },
        caCertFile: "/absent",
      });
      await expect(missing).rejects.toMatchObject({ kind: "io-failure" });
      const source = { kind: "endpoints", endpoints: ["https://127.0.0.1:1"] } as const;
      await expect(openEtcd({ source, caCertFile: first.key })).rejects.toMatchObject({ kind: "io-failure" });
    });
  });
}

describe.skipIf(!hasEtcd)(`etcd with users${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test.each(["on", "off"] as const)(
    "takes user and password from the address, and says when they are wrong or missing (gateway %s)",
    async (gateway) => {
      const cluster = await startEtcd({ gateway });
      const [endpoint = ""] = cluster.endpoints;
      enableUsers(endpoint, []);
      const withUser = (user: string) => endpoint.replace("http://", `http://${user}@`);

      expect(await tryRead([withUser("root:right%40word")], {})).toBe("ok");
      const wrong = await tryRead([withUser("root:wrong-word")], {});
      expect(wrong).toEqual(atStage("authenticate"));
      expect(Bun.inspect(wrong)).not.toContain("wrong-word");
      expect(await tryRead([endpoint], {})).toEqual(atStage("authenticate"));
      await cluster.stop();
    },
  );

  test("requests a new token when the old one has become invalid", async () => {
    const cluster = await startEtcd({ flags: ["--auth-token=simple"] });
    const [endpoint = ""] = cluster.endpoints;
    enableUsers(endpoint, []);
    const store = await openEtcd({
      source: { kind: "endpoints", endpoints: [endpoint.replace("http://", "http://root:right%40word@")] },
    });
    await store.read([]);
    const flags = ["--user=root:right@word"];
    etcdctl(endpoint, ["auth", "disable"], flags);
    etcdctl(endpoint, ["auth", "enable"]);

    expect((await store.commit([{ kind: "put", key: "/k", value: "x" }])).ok).toBe(true);
    await store.close();
    await cluster.stop();
  });

  test.each(["on", "off"] as const)(
    "goes on without a token where users are turned off, and with one again where they are on (gateway %s)",
    async (gateway) => {
      const cluster = await startEtcd({ gateway });
      const [endpoint = ""] = cluster.endpoints;
      const store = await openEtcd({
        source: { kind: "endpoints", endpoints: [endpoint.replace("http://", "http://root:right%40word@")] },
      });

      expect((await store.commit([{ kind: "put", key: "/k", value: "off" }])).ok).toBe(true);
      enableUsers(endpoint, []);
      expect((await store.commit([{ kind: "put", key: "/k", value: "on" }])).ok).toBe(true);
      await store.close();
      await cluster.stop();
    },
  );

  test("switches to gRPC if the gateway rejects a client certificate with a common name", async () => {
    const directory = temporaryDirectory("etcd-cn");
    const root = makeRoot(directory.path, "root-ca");
    const server = makeSigned(directory.path, "server", root);
    const client = makeSigned(directory.path, "client", root, { subject: "/CN=root" });
    const cluster = await startEtcd({ tls: { ...server, clientCa: root.cert } });
    enableUsers(cluster.endpoints[0] ?? "", [`--cacert=${root.cert}`, `--cert=${client.cert}`, `--key=${client.key}`]);

    const paths = { caCertFile: root.cert, certFile: client.cert, keyFile: client.key };
    expect(await tryRead(cluster.endpoints, paths)).toBe("ok");
    await cluster.stop();
    directory.remove();
  });
});

function enableUsers(endpoint: string, flags: readonly string[]): void {
  etcdctl(endpoint, ["user", "add", "root:right@word"], flags);
  etcdctl(endpoint, ["user", "grant-role", "root", "root"], flags);
  etcdctl(endpoint, ["auth", "enable"], flags);
}
