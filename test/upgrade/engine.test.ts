/** The engine of an upgrade on a real API server: what only that can show. All moments of a kill: src/upgrade/engine.test.ts. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiVersionOf, OPERATOR_API } from "../../src/identity.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { type ClusterObjects, clusterObjects } from "../../src/kube/objects.ts";
import { openBackups } from "../../src/upgrade/engine/backups.ts";
import { planApply } from "../../src/upgrade/engine/dry-run.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { SETTINGS_NAMESPACE, setting, settingPath } from "../support/setting-steps.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";
import { startProxy } from "../support/unreliable-proxy.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vendor-upgrade";
const SECRETS = "/api/v1/namespaces/kube-system/secrets";

let server: ApiServer;
let objects: ClusterObjects;
let folder: TemporaryDirectory;
let close: () => Promise<void>;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  folder = temporaryDirectory("upgrade");
  const means = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
  const client = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, { ...means, program: "vendorctl" });
  close = () => client.close();
  objects = clusterObjects(client);
  await server.createNamespace(SETTINGS_NAMESPACE);
});
afterAll(async () => {
  await close?.();
  folder?.remove();
  await server?.stop();
});

const deployment = (replicas: number, namespace = SETTINGS_NAMESPACE) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace },
  spec: {
    replicas,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "web", image: `web:${replicas}` }] },
    },
  },
});

describe("planApply() on a real API server", () => {
  testServer(
    "shows the server's own result, and the managers and values of fields that are taken by force",
    async () => {
      const path = "/apis/apps/v1/namespaces/settings/deployments/web";
      await objects.create("/apis/apps/v1/namespaces/settings/deployments", deployment(3));
      await server.kubectl(["scale", "deployment/web", "--namespace=settings", "--replicas=5"]);
      await objects.apply(
        path,
        { ...deployment(3), spec: { ...deployment(3).spec, replicas: undefined } },
        { force: true },
      );
      const before = await objects.read(path);

      const [change] = await planApply(objects, [deployment(1)]);

      expect(change).toMatchObject({
        action: "update",
        what: "Deployment settings/web",
        path,
        conflicts: [{ field: ".spec.replicas", manager: "kubectl", value: "5" }],
      });
      expect(change?.diff).toMatch(/^-\s+replicas: 5\n\+\s+replicas: 1$/m);
      expect(change?.diff).toMatch(/^-\s+image: web:3\n\+\s+image: web:1$/m);
      expect(await objects.read(path)).toEqual(before ?? {});
      const { template } = deployment(3).spec;
      expect(await planApply(objects, [{ ...deployment(5), spec: { ...deployment(5).spec, template } }])).toEqual([]);
    },
  );

  testServer("marks objects whose namespace or kind does not exist yet", async () => {
    const installation = {
      apiVersion: apiVersionOf(OPERATOR_API),
      kind: "Installation",
      metadata: { name: "default" },
      spec: {},
    };
    const changes = await planApply(objects, [deployment(1, "not-yet"), installation]);

    expect(changes.map(({ action, isUnverified }) => [action, isUnverified])).toEqual([
      ["create", true],
      ["create", true],
    ]);
  });
});

describe("backups on a real API server", () => {
  testServer("larger than an object may be are divided, and read as they were", async () => {
    const text = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)))
      .toString("hex")
      .repeat(10);
    const noise = Array.from({ length: 40 }, () =>
      Buffer.from(crypto.getRandomValues(new Uint8Array(40_000))).toString("base64"),
    ).join("");
    const backups = openBackups({ objects, run: "large", copy: async () => {} });
    await backups.save("objects", noise + text);
    await backups.save("objects", "another text");

    expect((await objects.list(SECRETS)).length).toBeGreaterThan(1);
    expect((await backups.read("objects")) === noise + text).toBe(true);
    expect(await backups.read("absent")).toBeUndefined();
  });
});

interface Started {
  readonly process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly lines: readonly Record<string, unknown>[];
  readonly ended: Promise<void>;
}

function start(...args: readonly string[]): Started {
  return startWith(server.adminKubeconfig, ...args);
}

function startWith(kubeconfig: string, ...args: readonly string[]): Started {
  const command = [process.execPath, join(import.meta.dir, "engine-run.process.ts"), kubeconfig, ...args];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const lines: Record<string, unknown>[] = [];
  const read = async () => {
    let rest = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const parts = `${rest}${chunk}`.split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts.map((line) => JSON.parse(line) as Record<string, unknown>));
    }
    await child.exited;
  };
  return { process: child, lines, ended: read() };
}

async function run(...args: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const started = start(...args);
  await started.ended;
  return started.lines;
}

/** Nobody has to wait 15 s for the Lease of a process that the test has killed. */
const shortenLease = () => objects.patch(LEASE, { spec: { leaseDurationSeconds: 1 } });
const releaseLease = () => objects.patch(LEASE, { spec: { holderIdentity: "" } });

const values = async () =>
  Object.fromEntries(
    (await objects.list("/api/v1/namespaces/settings/configmaps"))
      .map((object) => object as { metadata: { name: string }; data?: { value?: string } })
      .filter(({ metadata }) => metadata.name !== "kube-root-ca.crt")
      .map(({ metadata, data }) => [metadata.name, data?.value]),
  );

describe("processes that carry out an upgrade", () => {
  testServer(
    "one at a time; killed ones are continued; twice writes nothing but the Lease; rolled back, all is as before",
    async () => {
      for (const name of ["a", "b"]) await objects.apply(settingPath(name), setting(name, "old"), { force: true });
      const before = await values();
      await run("plan", folder.path);
      // While it waits in its second step, another is refused.
      const first = start("apply", folder.path);
      await pollUntil(() => first.lines.some(({ line }) => line === "waiting"), "the slow step");
      const second = await run("apply", folder.path);
      expect(second.at(-1)?.["failure"]).toMatch(/^Cannot begin: "test\/\d+" is upgrading this cluster now$/);

      first.process.kill("SIGKILL");
      await first.ended;
      expect(await values()).toEqual({ a: "first", b: "first" });
      await objects.create("/api/v1/namespaces/settings/configmaps", setting("go", ""));
      // The next one takes the Lease over, and is killed too: after its second write, which may have taken effect or not.
      await shortenLease();
      expect((await run("apply", folder.path, "2")).at(-1)?.["end"]).toBeUndefined();
      await releaseLease();
      expect((await run("apply", folder.path)).at(-1)).toEqual({ end: "apply" });
      expect(await values()).toEqual({ a: "first", b: "first", slow: "slow", new: "last", go: "" });

      const audit = server.startAudit();
      await run("apply", folder.path);
      const writes = audit
        .requests()
        .filter(({ verb, userAgent }) => isWrite(verb) && userAgent.startsWith("vendorctl"));
      expect([...new Set(writes.map(({ resource }) => resource))]).toEqual(["leases"]);

      expect((await run("rollback", folder.path)).at(-1)).toEqual({ end: "rollback" });
      expect(await values()).toEqual({ ...before, go: "" });
    },
    60_000,
  );

  testServer(
    "goes on when the API server is back, although it was away for so long that the Lease was lost",
    async () => {
      await objects.remove(settingPath("go"));
      const holder = async () => (await objects.read(LEASE))?.["spec"] as { readonly leaseTransitions?: number };
      const proxy = await startProxy(Number(new URL(server.url).port));
      const kubeconfig = join(folder.path, "by-proxy");
      const text = readFileSync(server.adminKubeconfig, "utf8");
      writeFileSync(kubeconfig, text.replace(server.url, `https://127.0.0.1:${proxy.port}`));
      await run("plan", folder.path);
      const only = startWith(kubeconfig, "apply", folder.path);
      const says = (words: string) => only.lines.some(({ line }) => String(line).startsWith(words));
      await pollUntil(() => says("waiting"), "the slow step");
      const { leaseTransitions } = await holder();
      await proxy.whileDown(() => pollUntil(() => says("Lost the lease"), "the loss of the Lease", 60_000));
      await objects.create("/api/v1/namespaces/settings/configmaps", setting("go", ""));
      await only.ended;
      await proxy.stop();

      expect(only.lines.at(-1)).toEqual({ end: "apply" });
      expect(says("Acquired the lease")).toBe(true);
      expect(await values()).toEqual({ a: "first", b: "first", slow: "slow", new: "last", go: "" });
      expect((await holder()).leaseTransitions).toBe(leaseTransitions as number);
    },
    120_000,
  );
});

function isWrite(verb: string): boolean {
  return !["get", "list", "watch"].includes(verb);
}
