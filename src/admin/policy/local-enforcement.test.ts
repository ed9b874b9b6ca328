/** Commands that say what policies do, on a host whose agent does not run. */
import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { networkProfileSpec } from "../../model/network-profile.ts";
import type { AgentFacts } from "../host/facts.ts";
import { EXIT_OK } from "../main/command.ts";

const { nodeAgent } = identity;
const CONFIG = JSON.stringify({
  ...{ name: "pods", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } },
  ...{ datastore_type: "embedded", datastore_path: import.meta.path },
});
const NEVER: AgentFacts = { agent: "not used", hasPolicyTable: false };
const STOPPED: AgentFacts = { agent: "stopped", hasPolicyTable: true };
const RUNNING: AgentFacts = { agent: "running", hasPolicyTable: true };
const START = `systemctl enable --now ${nodeAgent}`;
const NOTHING = `nothing enforces it here: ${nodeAgent} does not run (${START})`;
const WAITING = `the rules in the kernel of this host are of before ${nodeAgent} stopped; changes wait for it (${START})`;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("nodes", "Node", "here", { bgp: { ipv4Address: "192.0.2.2/24" } });
  await put("profiles", "Profile", "pods", networkProfileSpec("pods"));
  await container("web", "here", "10.0.0.5");
  await container("far", "there", "10.0.1.5");
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...more }, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function container(name: string, node: string, address: string): Promise<void> {
  const spec = {
    ...{ orchestrator: "cni", node, workload: name, containerID: name, endpoint: "eth0", profiles: ["pods"] },
    ...{ ipNetworks: [`${address}/32`], interfaceName: `vend${name}` },
  };
  const labels = { role: name, [`${identity.labelPrefix}namespace`]: "default" };
  return put("workloadendpoints", "WorkloadEndpoint", `${node}-cni-${name}-eth0`, spec, {
    namespace: "default",
    labels,
  });
}

const closing = (role: string) =>
  JSON.stringify({
    ...{ apiVersion: API_VERSION, kind: "NetworkPolicy", metadata: { name: role, namespace: "default" } },
    spec: { selector: `role == '${role}'`, types: ["Ingress"] },
  });

async function tool(words: string, agentFacts: AgentFacts, { stdin = "", isHost = true } = {}) {
  const files = isHost ? { "/etc/cni/net.d/10-net.conf": CONFIG } : {};
  const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
  const run = await runInside(words.split(" "), { store, stdin, files, env, hostName: "here", agentFacts });
  expect(run.code).toBe(EXIT_OK);
  return run;
}

describe("changes of policies", () => {
  test.each([
    ["never ran", NEVER, [`note: ${NOTHING}`]],
    ["stopped", STOPPED, [`note: ${WAITING}`]],
    ["stopped, for a user other than root", { ...STOPPED, hasPolicyTable: undefined }, ["changes have no effect"]],
    ["is not seen by a user other than root", { ...NEVER, hasPolicyTable: undefined }, []],
    ["runs", RUNNING, []],
  ] as const)("say that nothing carries them out here: the agent %s", async (_, agent, notes) => {
    const apply = await tool("apply -f -", agent, { stdin: closing("web") });
    const labelled = await tool("label container web role=db", agent);
    const deleted = await tool("delete networkpolicy web", agent);
    for (const { stderr } of [apply, labelled]) {
      expect(stderr).toMatch(/^note: (closes|opens) ingress of 1 container: web\n/);
      const [, ...others] = stderr.trimEnd().split("\n");
      expect(others).toHaveLength(notes.length);
      for (const [index, note] of notes.entries()) expect(others[index]).toContain(note);
    }
    expect(deleted.stderr).toBe("");
  });

  test("of another node say nothing about the agent of this host, nor does a host without the network", async () => {
    expect((await tool("apply -f -", NEVER, { stdin: closing("far") })).stderr).toBe(
      "note: closes ingress of 1 container: far\n",
    );
    expect((await tool("apply -f -", NEVER, { stdin: closing("web"), isHost: false })).stderr).toBe(
      "note: closes ingress of 1 container: web\n",
    );
  });
});

describe("answers about policies", () => {
  const ask = "policy explain --from 192.0.2.99 --port 80 --to";

  test.each([
    ["never ran", NEVER, NOTHING],
    ["stopped", STOPPED, WAITING],
  ] as const)("say whether they are so: the agent %s", async (_, agent, note) => {
    await tool("apply -f -", RUNNING, { stdin: closing("web") });

    expect(JSON.parse((await tool(`${ask} web -o json`, agent)).stdout).packets[0]).toMatchObject({
      ...{ verdict: "deny", note },
    });
    for (const what of ["wep web", "networkpolicy web"]) {
      const { items } = JSON.parse((await tool(`describe ${what} -o json`, agent)).stdout);
      expect(items[0].related.at(-1)).toEqual({ title: "Note", summary: note, rows: [] });
    }
  });

  test("are as they are if the agent runs, and of what is elsewhere", async () => {
    await tool("apply -f -", RUNNING, { stdin: closing("web") });
    await tool("apply -f -", RUNNING, { stdin: closing("far") });
    const answers = [
      await tool(`${ask} web`, RUNNING),
      await tool("describe wep web", RUNNING),
      await tool(`${ask} far`, NEVER),
      await tool("describe wep far", NEVER),
      await tool("describe networkpolicy far", NEVER),
      await tool("describe ippools", NEVER),
      await tool("describe wep web", NEVER, { isHost: false }),
    ];

    for (const { stdout } of answers) expect(stdout).not.toContain(nodeAgent);
  });
});
