/**
 * A user of the host without rights attacks the ports of health and metrics. The agent keeps few connections, answers one
 * request on each, and its probe of readiness in time.
 */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resourceKey } from "../../src/model/keys.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { type Agent, startAgent } from "./agent.ts";

const problem = hostProblem() ?? program("setpriv");
const test = testNeeding(problem);

const [HEALTH, METRICS] = [9099, 9091];
/** What the probes in the manifests have. */
const PROBE_MILLISECONDS = 10_000;
/** Of one port. */
const MOST_CONNECTIONS = 2_048;
/** What the agent may have open for a moment besides: files, connections that it is about to close. */
const OTHERS = 256;

/** Each runs until it is killed; `ready` is printed when the attack is in effect. */
const ATTACK = `
import { connect } from "node:net";
const [kind, port, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const metrics = "GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
const open = () => {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  return socket;
};
const idle = () => open().resume();
const pipeline = () => {
  const socket = open();
  const write = () => { while (socket.writable && socket.write(metrics.repeat(100))); };
  let replies = 0;
  socket.on("data", (bytes) => {
    const before = replies;
    replies += String(bytes).split("HTTP/1.1 ").length - 1;
    if (before < 1 && replies >= 1) console.log("replied");
    if (before < 2 && replies >= 2) console.log("replied again");
  });
  socket.on("connect", write).on("drain", write).on("close", () => setTimeout(pipeline, 1));
  return socket;
};
const begin = { idle, pipeline }[kind];
for (let begun = 0; begun < count; begun += 100) {
  const some = Array.from({ length: Math.min(100, count - begun) }, begin);
  await Promise.all(some.map((socket) => new Promise((resolve) => {
    for (const event of ["connect", "close"]) socket.once(event, resolve);
  })));
}
console.log("ready");
setInterval(() => {}, 60_000);
`;

const PROBE = `
const response = await fetch("http://127.0.0.1:${HEALTH}/readiness", { signal: AbortSignal.timeout(${PROBE_MILLISECONDS}) })
  .catch(() => undefined);
console.log(JSON.stringify({ status: response?.status }));
`;

let site: PluginSite;
let agent: Agent;
/** The files with their process IDs. */
const attackers: string[] = [];
beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openPluginSite("embedded");
  const { name, cniVersion, ...plugin } = site.config();
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  const spec = { prometheusMetricsEnabled: true, prometheusMetricsHost: "127.0.0.1" };
  const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
  await site.store.put([{ kind: "put", key: resourceKey("nodeagentconfigurations", { name: "default" }), value }]);
  site.host.writeFile(`${site.host.directory}/attack.ts`, ATTACK);
  agent = await startAgent(site.host);
  await pollUntil(async () => (await askPort()).status === 200, "the agent to be ready");
}, 60_000);
afterEach(async () => {
  const files = attackers.splice(0);
  if (files.length > 0) await site.host.must(["sh", "-c", `kill -KILL $(cat ${files.join(" ")})`]);
});
afterAll(() => site?.[Symbol.asyncDispose]());

let started = 0;

/** Returns what it has printed so far. */
async function attack(kind: "idle" | "pipeline", port: number, count: number): Promise<() => string> {
  started += 1;
  const log = `attack-${started}.log`;
  const script = `${site.host.directory}/attack.ts`;
  const user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
  const pidFile = `${site.host.directory}/attack-${started}.pid`;
  attackers.push(pidFile);
  const command = [...user, process.execPath, script, kind, String(port), String(count)];
  site.host.start(["sh", "-c", `echo $$ > ${pidFile}; exec "$@"`, "sh", ...command], log);
  const file = site.host.view(`${site.host.directory}/${log}`);
  const printed = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  await pollUntil(() => printed().includes("ready"), "the attack", 60_000);
  return printed;
}

/** As root, from the host itself. */
async function askPort(): Promise<{ readonly status?: number }> {
  const script = `${site.host.directory}/probe.ts`;
  site.host.writeFile(script, PROBE);
  return JSON.parse(await site.host.must([process.execPath, script]));
}

const openDescriptors = () => {
  const { descriptors, connections } = agent.holds();
  return descriptors + connections;
};

describe("the agent's ports under attack by another user", () => {
  test("keeps few of 12,000 connections that say nothing, and answers probes beside them", async () => {
    const before = openDescriptors();
    await Promise.all([attack("idle", HEALTH, 6_000), attack("idle", METRICS, 6_000)]);
    for (let count = 0; count < 3; count += 1) {
      expect((await askPort()).status).toBe(200);
      expect(openDescriptors() - before).toBeLessThanOrEqual(2 * MOST_CONNECTIONS + OTHERS);
    }
  }, 120_000);

  test("answers one request on each of 120 connections with requests in a pipeline", async () => {
    const attacks = await Promise.all([attack("pipeline", METRICS, 60), attack("pipeline", HEALTH, 60)]);
    for (let count = 0; count < 3; count += 1) expect((await askPort()).status).toBe(200);
    for (const printed of attacks) {
      await pollUntil(() => printed().includes("replied\n"), "a reply");
      expect(printed()).not.toContain("replied again");
    }
  }, 120_000);
});
