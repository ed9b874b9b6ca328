/** The node agent registers its host with the identity of the machine, and notices a machine of the same node name. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { readStoredNode } from "../../src/model/stored-resources.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());
const NODE_KEY = resourceKey("nodes", { name: "node-1" });

describe("the registration by the node agent", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const becomeMachine = (id: string) => site.host.writeFile(`${identity.stateDirectory}/machine-id`, `${id}\n`);
  const registered = async () => readStoredNode((await site.store.list()).get(NODE_KEY) ?? "", NODE_KEY).machine;

  test("records the machine at the start of the agent, if a network is installed", async () => {
    becomeMachine("first-machine");
    {
      const agent = await startAgent(site.host);
      await agent.signal("TERM");
      expect(await agent.ended).toBe(0);
      expect(await registered()).toBeUndefined();
    }
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    const agent = await startAgent(site.host);
    await pollUntil(() => agent.log().includes("node/node-1 updated"), "the agent to register its node");
    expect(await registered()).toMatch(/^[0-9a-f]{32}$/);
    await site.add(await site.makePod({ netnsName: "vt-first" }));
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);
  });

  test("reports another machine under the same node name with the remedy; neither it nor its GC takes anything", async () => {
    const [before, records] = [await registered(), await site.left()];
    becomeMachine("second-machine");
    const agent = await startAgent(site.host);
    await pollUntil(() => agent.log().includes("[ERROR]"), "the agent to report the other machine");

    expect(agent.log()).toMatch(/\[ERROR\].*Cannot register node "node-1": another machine has registered it/);
    expect(agent.log()).toContain("--force");
    expect(await registered()).toBe(before ?? "");
    const pod = await site.makePod();
    expect(failureOf(await site.call("ADD", pod))).toMatchObject({ code: 7 });
    const config = { ...site.config(), "cni.dev/valid-attachments": [] };
    // The links of this host are removed, whoever holds its name; what the other machine recorded stays.
    expect(failureOf(await site.call("GC", pod, { config })).msg).toContain("another machine has registered it");
    const recorded = (lines: readonly string[]) => lines.filter((line) => line.startsWith("/"));
    expect(recorded(await site.left())).toEqual(recorded(records));
    expect(recorded(records)).not.toEqual([]);
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);
  });
});
