/**
 * Alerts in the console: a real Prometheus with the rules that are shipped, behind a Service that a real API server proxies to, for
 * readers with and without the right to ask it. Then a server in its place that does what Prometheus does not.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Health } from "../../src/console/api/health.ts";
import { clusterSources } from "../../src/console/source/cluster-source.ts";
import type { ConsoleSource } from "../../src/console/source.ts";
import { identity } from "../../src/identity.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { LIMITS } from "../../src/kube/retries.ts";
import { alertGroups, alertsManifest } from "../../src/release/alerts.ts";
import { type Daemon, startDaemon, sweepDaemons } from "../support/daemon.ts";
import { documentsOfPage } from "../support/docs-page.ts";
import { freePorts } from "../support/etcd.ts";
import { meansWith } from "../support/imitated-api.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

/** An endpoint of a Service may not be on loopback. */
const address = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;
const problems = [
  apiServerProblem(),
  program("prometheus"),
  address === undefined ? "needs an IPv4 address besides loopback" : undefined,
];
const testServer = testNeeding(...problems);
const { signal } = new AbortController();

const AREA = "alerts";
const NAMESPACE = "monitoring";
const NODE_ADDRESS = "192.0.2.99";
const RULES = alertGroups(identity).flatMap(({ rules }) => rules);

let server: ApiServer;
let prometheus: Daemon;
let directory: TemporaryDirectory;
let target: Bun.Server<undefined>;
let imitation: Bun.Server<undefined>;
/** What the server in place of Prometheus answers, and what it was sent. */
let reply: (request: Request) => Response | Promise<Response> = () => new Response();
const received: { readonly path: string; readonly headers: string }[] = [];

beforeAll(async () => {
  if (problems.some((problem) => problem !== undefined) || address === undefined) return;
  server = await startApiServer();
  await installCrds(server);
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-alpha" } }));
  const addresses = [{ type: "InternalIP", address: NODE_ADDRESS }];
  const patch = JSON.stringify({ status: { addresses } });
  await server.kubectl(["patch", "node", "node-alpha", "--subresource=status", "--type=merge", `--patch=${patch}`]);
  for (const name of [NAMESPACE, "shop"]) await server.createNamespace(name);
  const roles = documentsOfPage("console.md").get("Who sees alerts") ?? expect.unreachable();
  await server.apply(roles);

  target = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(metricsText()) });
  const [port = 0] = await freePorts(1);
  prometheus = await startPrometheus(`${address}:${port}`);
  await createService("prometheus", { address, port });
  imitation = Bun.serve({
    ...{ hostname: address, port: 0, idleTimeout: 0 },
    fetch(request) {
      received.push({ path: new URL(request.url).pathname, headers: JSON.stringify([...request.headers]) });
      return reply(request);
    },
  });
  await createService("imitation", { address, port: imitation.port ?? 0 });
}, 180_000);
afterAll(async () => {
  await prometheus?.kill();
  await Promise.all([target?.stop(true), imitation?.stop(true)]);
  await server?.stop();
  directory?.remove();
});

/** A pool without a free address, a node that releases none, an agent that is not in sync; the rest is well. */
function metricsText(): string {
  const [controllers, agent] = [identity.controllers, identity.nodeAgent].map((name) => name.replaceAll("-", "_"));
  return [
    `${controllers}_leader 1`,
    `${controllers}_pool_addresses_in_use{pool="blue-pool"} 64`,
    `${controllers}_pool_addresses{pool="blue-pool"} 64`,
    `${controllers}_node_addresses_overdue{node="node-alpha"} 3`,
    `${agent}_datastore_in_sync 0`,
    "",
  ].join("\n");
}

/** Its rules are those of the file that is shipped, but they do not wait; and one of somebody else. */
async function startPrometheus(listen: string): Promise<Daemon> {
  sweepDaemons(AREA);
  directory = temporaryDirectory(AREA);
  const write = (name: string, text: string) => writeFileSync(join(directory.path, name), text);
  write("ours.yaml", alertsManifest(identity).replaceAll(/^(\s*for:) .*$/gm, "$1 0s"));
  const foreign = { alert: "Watchdog", expr: "vector(1)", annotations: { summary: "of somebody else" } };
  write("theirs.yaml", JSON.stringify({ groups: [{ name: "theirs", rules: [foreign] }] }));
  const targets = [`127.0.0.1:${target.port}`];
  const scraped = { job_name: "all", static_configs: [{ targets, labels: { instance: `${NODE_ADDRESS}:9091` } }] };
  const settings = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["ours.yaml", "theirs.yaml"],
    scrape_configs: [scraped],
  };
  write("prometheus.yaml", JSON.stringify(settings));
  const daemon = startDaemon({
    command: [
      "prometheus",
      `--config.file=${join(directory.path, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(directory.path, "data")}`,
      `--web.listen-address=${listen}`,
    ],
    logFile: join(directory.path, "prometheus.log"),
    ready: async () => {
      if (!(await fetch(`http://${listen}/-/ready`)).ok) throw new Error("it is not ready");
    },
  });
  await daemon.ready();
  return daemon;
}

/** With a pod as its endpoint, in name: the API server proxies to the addresses of pods only. */
async function createService(name: string, endpoint: { readonly address: string; readonly port: number }) {
  const metadata = { name, namespace: NAMESPACE };
  const port = { name: "web", protocol: "TCP" };
  await server.apply(
    JSON.stringify({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ ...port, port: 9090 }] } }),
  );
  const spec = { nodeName: "node-alpha", containers: [{ name: "main", image: "example.invalid/none" }] };
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
  const status = { phase: "Running", podIP: endpoint.address, podIPs: [{ ip: endpoint.address }] };
  const patch = ["patch", "pod", name, `--namespace=${NAMESPACE}`, "--subresource=status", "--type=merge"];
  await server.kubectl([...patch, `--patch=${JSON.stringify({ status })}`]);
  const targetRef = { kind: "Pod", name, namespace: NAMESPACE };
  const endpoints = { apiVersion: "v1", kind: "Endpoints", metadata };
  const subsets = [{ addresses: [{ ip: endpoint.address, targetRef }], ports: [{ ...port, port: endpoint.port }] }];
  const slice = {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
    endpoints: [{ addresses: [endpoint.address], targetRef, conditions: { ready: true } }],
    ports: [{ ...port, port: endpoint.port }],
  };
  await server.apply(JSON.stringify({ ...endpoints, subsets }));
  await server.apply(JSON.stringify(slice));
}

async function open(token: string, service = "prometheus"): Promise<ConsoleSource> {
  const certificateAuthorityFile = server.credentials.authority.cert;
  const openSource = clusterSources({
    ...{ version: "v1.0.0", server: { apiRoot: server.url, certificateAuthorityFile }, now: () => new Date() },
    ...{ wait: (milliseconds) => Bun.sleep(milliseconds), uuid: () => crypto.randomUUID() },
    openClient: (access) => openKubeClient(access, meansWith({ limits: LIMITS })),
    alerts: { namespace: NAMESPACE, service, port: 9090 },
  });
  return openSource(token, signal);
}

/** Of Health, of a new session: the question is asked again. */
async function healthOf(token: string, service?: string): Promise<Health> {
  const source = await open(token, service);
  try {
    const isKnown = (health: Health) => alertsOf(health)?.detail !== "waiting for Prometheus";
    let health = await source.health(signal);
    await pollUntil(async () => {
      if (!isKnown(health)) health = await source.health(signal);
      return isKnown(health);
    }, "an answer");
    return health;
  } finally {
    await source.close();
  }
}

function alertsOf({ parts }: Health) {
  return parts.find(({ name }) => name === "alerts");
}

async function administrator(): Promise<string> {
  const plan = { name: "all", namespace: "kube-system", clusterRole: "cluster-admin" };
  return (await server.serviceAccount(plan)).token;
}

/** A reader of nothing but alerts, with the role of the page. */
async function alertsReader(): Promise<string> {
  const { token } = await server.serviceAccount({ name: "alerts", namespace: "shop" });
  const role = ["--role=console-alerts", "--serviceaccount=shop:alerts", `--namespace=${NAMESPACE}`];
  await server.kubectl(["create", "rolebinding", "console-alerts", ...role]).catch((failure: unknown) => {
    if (!`${failure}`.includes("already exists")) throw failure;
  });
  return token;
}

const ruleOf = (suffix: string) => RULES.find(({ alert }) => alert.endsWith(suffix)) ?? expect.unreachable();

describe("alerts of a real Prometheus", () => {
  testServer(
    "are shown with their node, their texts and where to read on; those of others are not",
    async () => {
      const token = await administrator();
      let health = await healthOf(token);
      const isComplete = async () => {
        health = await healthOf(token);
        // Until the target is read for the first time, there is no leader.
        const hasLeader = !JSON.stringify(health).includes(ruleOf("ControllersWithoutLeader").alert);
        return hasLeader && alertsOf(health)?.detail === "5 alerts";
      };
      await pollUntil(isComplete, "all alerts", 60_000);

      expect(alertsOf(health)).toMatchObject({ state: "failed", detail: "5 alerts" });
      const fired = (problems: Health["problems"]) =>
        problems.filter(({ message }) => message.startsWith("Prometheus alert ")).map(({ message }) => message);
      const [full, nearly, filling] = ["PoolFull", "PoolNearlyFull", "PoolFillsUp"].map(ruleOf);
      expect(fired(health.problems).toSorted()).toEqual(
        [
          `Prometheus alert ${filling?.alert}: More than 80 % of the addresses of pool blue-pool are in use`,
          `Prometheus alert ${full?.alert}: All addresses of pool blue-pool are in use: pods that need one do not start`,
          `Prometheus alert ${nearly?.alert}: More than 95 % of the addresses of pool blue-pool are in use`,
        ].toSorted(),
      );
      const [node] = health.nodes.filter(({ name }) => name === "node-alpha");
      expect(fired(node?.problems ?? []).toSorted()).toEqual(
        [
          `Prometheus alert ${ruleOf("AddressesOverdue").alert}: Node node-alpha does not release 3 addresses whose pods are gone`,
          `Prometheus alert ${ruleOf("NodeAgentNotInSync").alert}: The node agent ${NODE_ADDRESS}:9091 does not follow the datastore: policy there is out of date`,
        ].toSorted(),
      );
      const shown = health.problems.find(({ message }) => message.includes(`${full?.alert}:`));
      expect(shown).toMatchObject({ state: "failed", remedy: `see ${full?.annotations.runbook}` });
      expect(Math.abs(Date.now() - (shown?.since ?? 0))).toBeLessThan(120_000);
      expect(JSON.stringify(health)).not.toMatch(/Watchdog|somebody else/);
    },
    120_000,
  );

  testServer(
    "are hidden from who may not ask it, and named; the role of the page is enough to see them",
    async () => {
      const text = `alerts of Prometheus (get of services/proxy in ${NAMESPACE})`;
      const few = (await server.serviceAccount({ name: "few", namespace: "shop" })).token;
      const hidden = await healthOf(few);
      expect(hidden.hidden).toContain(text);
      expect(alertsOf(hidden)).toBeUndefined();
      expect(JSON.stringify(hidden)).not.toMatch(/blue-pool|node-alpha|Prometheus alert/);

      // Without the right to see nodes, all are problems of the cluster.
      const seen = await healthOf(await alertsReader());
      expect(seen.hidden).not.toContain(text);
      expect([seen.nodes, seen.problems.length]).toEqual([[], 5]);
      expect((await healthOf(await alertsReader(), "imitation")).hidden).toContain(text);
    },
    120_000,
  );
});

describe("a server in the place of Prometheus", () => {
  testServer(
    "is not shown the reader's token",
    async () => {
      received.length = 0;
      reply = () => Response.json({ status: "success", data: { alerts: [] } });
      const token = await administrator();
      expect(alertsOf(await healthOf(token, "imitation"))).toMatchObject({ state: "ok", detail: "none fires" });
      expect(received.map(({ path }) => path)).toEqual(["/api/v1/alerts"]);
      const sent = received.map(({ headers }) => headers).join();
      expect(sent).not.toContain(token);
      expect(sent).not.toMatch(/authorization/i);
    },
    60_000,
  );

  testServer(
    "that refuses, redirects, sends too much or something else is unknown, and the rest of health is as before",
    async () => {
      const token = await administrator();
      const others = async (service?: string) => {
        const { parts, nodes } = await healthOf(token, service);
        // Health does not wait for the search for leaks either.
        const shown = parts.filter(({ name }) => !["alerts", "address records"].includes(name));
        return [shown.map(({ name, state }) => [name, state]), nodes.length];
      };
      reply = () => Response.json({ status: "success", data: { alerts: [] } });
      const expected = await others("imitation");
      const replies: readonly (readonly [() => Response, string])[] = [
        [() => new Response("who are you", { status: 401 }), "wants credentials"],
        [() => new Response("no", { status: 403 }), "403"],
        [() => Response.redirect("http://127.0.0.1:1/elsewhere", 302), "it redirects to"],
        [() => new Response("x".repeat(5_000_000)), "larger than 4194304 bytes"],
        [() => new Response("<html>"), "is not JSON"],
        [() => new Response("down", { status: 500 }), "500: down"],
      ];
      for (const [next, reason] of replies) {
        reply = next;
        expect(alertsOf(await healthOf(token, "imitation"))).toMatchObject({
          state: "unknown",
          detail: expect.stringContaining(reason),
        });
        expect(await others("imitation")).toEqual(expected);
      }
      expect(alertsOf(await healthOf(token, "nowhere"))).toMatchObject({
        state: "unknown",
        detail: expect.stringContaining("not found"),
      });
    },
    120_000,
  );

  testServer(
    "that does not answer is given up after five seconds, and health does not wait for it",
    async () => {
      reply = () => new Promise(() => {});
      const source = await open(await administrator(), "imitation");
      const begun = performance.now();
      expect(alertsOf(await source.health(signal))).toMatchObject({
        state: "unknown",
        detail: "waiting for Prometheus",
      });
      expect(performance.now() - begun).toBeLessThan(4_000);
      const detail = async () => alertsOf(await source.health(signal))?.detail ?? "";
      await pollUntil(async () => (await detail()).includes("not answered within 5 seconds"), "the time limit");
      await source.close();
    },
    60_000,
  );
});
