import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as v from "valibot";
import { type AdminSurroundings, contextIn, WELL } from "../../../test/support/admin-context.ts";
import { DENIED, imitateNode, WELL as NO_LOSS } from "../../../test/support/imitated-flows.ts";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import type { HostFacts, RoutingFacts } from "../../admin/host/facts.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { identity } from "../../identity.ts";
import { NODE } from "../../model/kinds.ts";
import { node } from "../../model/node.ts";
import { healthSchema } from "../api/health.ts";
import { refusalOf } from "../server/refusal.ts";
import { openHostSource } from "./host-source.ts";

const directory = temporaryDirectory("host-source");
afterAll(() => directory.remove());

const { product, ipamType } = identity;
const { signal } = new AbortController();
const NOW = new Date("2026-01-02T03:04:05Z");
const CONFIG = JSON.stringify({
  ...{ name: "pods", cniVersion: "1.0.0", type: product, ipam: { type: ipamType } },
  ...{ datastore_type: "embedded", datastore_path: import.meta.path },
});
const RUNNING: HostFacts = { ...WELL, agent: "running", hasPolicyTable: true };
const ROUTING: RoutingFacts = {
  ...{ isAgentRunning: true, kernelRoutes: [], refusedClaims: [], routingProblems: [], policyProblems: [] },
  state: { kind: "running", problems: [] },
  bird: {
    version: "3",
    routerId: "1",
    startedAt: "",
    isRecovering: false,
    routes: [],
    sessions: [session("up"), session("start")],
  },
  datastore: { state: "in sync", knownAt: "2026-01-02T03:04:00Z" },
};

function session(state: string) {
  const routes = { imported: 1, exported: 1 };
  return {
    name: "s",
    type: "global",
    peer: "p",
    address: "192.0.2.1",
    peerAs: "1",
    state,
    since: "",
    info: "",
    routes,
    isLimitHit: false,
  };
}

async function open(more: AdminSurroundings = {}) {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24"), nodeChange("here"), nodeChange("there"));
  const files = { "/etc/cni/net.d/10-pods.conf": CONFIG };
  const surroundings = { store, files, hostName: "here", hostFacts: RUNNING, now: NOW, ...more };
  const context = contextIn(surroundings, { stdout: () => {}, stderr: () => {} });
  const given = { operands: [], switches: new Set<string>(), values: new Map<string, string>(), lists: new Map() };
  return openHostSource(context, { given, store, isEmbedded: true });
}

describe("the source of one host", () => {
  test("health has the host, its agent, datastore, network and BGP", async () => {
    const health = await (await open({ routingFacts: ROUTING })).health(signal);

    expect(v.parse(healthSchema, health)).toEqual(health);
    expect(health.parts.map(({ name, state, detail }) => [name, state, detail])).toEqual([
      ["node agent", "ok", "running"],
      ["network", "ok", "pods"],
      ["datastore", "ok", `embedded: ${import.meta.path}`],
      ["addresses", "ok", "1 pool, 0 in use"],
      ["containers", "ok", "0 containers"],
      ["policies", "ok", "0 policies"],
      ["BGP", "warning", "1 of 2 sessions up"],
    ]);
    expect(health.parts[0]?.knownAt).toBe(Date.parse("2026-01-02T03:04:00Z"));
    expect(health.nodes.map(({ name, state, agent, bgp }) => [name, state, agent, bgp])).toEqual([
      ["here", "ok", "running", "1 of 2 sessions up"],
      ["there", "unknown", "", ""],
    ]);
  });

  test("health says that the agent has stopped, and what to do about what is wrong", async () => {
    const store = openMemory();
    const record = node.make({ name: "here" }, { ipv4VXLANTunnelAddr: "10.0.0.9" });
    await seed(store, { kind: "put", key: NODE.key({ name: "here" }), value: node.write(record) });
    const health = await (await open({ store, hostFacts: { ...RUNNING, agent: "stopped" } })).health(signal);

    expect(health.state).toBe("failed");
    expect(health.nodes.map(({ state, tunnel }) => [state, tunnel])).toEqual([["failed", "VXLAN 10.0.0.9"]]);
    expect(health.problems.map(({ message }) => message).join()).toContain("there is no enabled IP pool");
    expect(health.problems.some(({ command, remedy }) => command !== undefined || remedy !== undefined)).toBe(true);
  });

  test("flows and explanations are those of the agent of this host", async () => {
    const answers: readonly FlowAnswer[] = [{ flow: DENIED }, NO_LOSS];
    using agent = imitateNode(join(directory.path, "flows"), () => answers);
    const source = await open({ env: agent.env });

    expect(await Array.fromAsync(source.flows({ verdict: "denied" }, true, signal))).toEqual([...answers]);
    expect(await Array.fromAsync(source.explanation("n2-9", signal))).toEqual([...answers]);
    expect(agent.asked).toEqual(["/flows?verdict=denied&follow=true", "/explanation?id=n2-9"]);
  });

  test("says what to do if no agent records flows", async () => {
    const source = await open({
      env: { [`${identity.environmentPrefix}RUN_DIRECTORY`]: join(directory.path, "none") },
    });

    await expect(Array.fromAsync(source.flows({}, false, signal))).rejects.toMatchObject({ kind: "resource-missing" });
    await expect(source.draft("n1", signal)).rejects.toMatchObject({ kind: "resource-missing" });
  });

  test("says that the agent does not answer, which can pass", async () => {
    const run = join(directory.path, "stopped");
    const agent = imitateNode(run, () => []);
    agent[Symbol.dispose]();
    await Bun.write(join(run, "flows.sock"), "");
    const failure: unknown = await Array.fromAsync((await open({ env: agent.env })).flows({}, false, signal)).catch(
      (error: unknown) => error,
    );

    expect(refusalOf(failure)).toMatchObject({
      status: 503,
      message: expect.stringContaining("does not answer"),
      remedy: expect.stringContaining(`is ${identity.nodeAgent} running?`),
    });
  });

  test("addresses are those of the datastore of its network", async () => {
    const source = await open();

    expect((await source.pools(signal)).pools.map(({ name }) => name)).toEqual(["blue"]);
    expect(await Array.fromAsync(source.poolMap("blue", signal))).toHaveLength(1);
    expect(await source.address("10.0.0.1", signal)).toEqual({ address: "10.0.0.1", pool: "blue", use: "." });
  });
});
