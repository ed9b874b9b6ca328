/** What the node agent tells plugins and the cluster about its host: node name, MTU, and its release. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../src/model/agent-version-annotation.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { node } from "../../src/model/node.ts";
import { VERSION } from "../../src/version.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { startAgent } from "./agent.ts";

const test = testNeeding(hostProblem(), program("etcd"));
const EARLIER = "v0.0.1";

describe("a node agent beside one of an earlier release", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() !== undefined) return;
    const older = node.make({ name: "node-2", annotations: { [AGENT_VERSION_ANNOTATION]: EARLIER } }, {});
    const key = resourceKey("nodes", { name: "node-2" });
    site = await openPluginSite("etcd", [
      poolChange("blue", "10.50.0.0/16", { vxlanMode: "Always" }),
      nodeChange("node-1"),
      { kind: "put", key, value: node.write(older) },
    ]);
    await tool("patch", "clusterinformation", "default", "-p", `{"spec":{"${identity.product}Version":"${EARLIER}"}}`);
    await site.host.must([
      "sh",
      "-ec",
      "ip link add up0 mtu 1400 type veth peer name up1; ip link set up0 up; ip link set up1 up; ip route add default dev up0",
    ]);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const install = (more: object) => {
    const { name, cniVersion, ...plugin } = site.config({ ipam: { type: identity.ipamType }, ...more });
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  };
  const tool = (...words: readonly string[]) => {
    const options = Object.entries(site.store.config).flatMap(([name, value]) => [
      `--${name.replaceAll("_", "-")}`,
      String(value),
    ]);
    return site.host.must([builtProgram(identity.adminTool), ...words, ...options]);
  };
  const versions = async () => JSON.parse(await tool("version", "-o", "json"));
  const fileOf = (name: string) => {
    const path = site.host.view(`${identity.stateDirectory}/${name}`);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  };

  test("writes its node name and the MTU, which the plugin uses, and waits for the other with the version", async () => {
    install({});
    const agent = await startAgent(site.host);
    await pollUntil(() => fileOf("mtu") !== undefined, "the agent to write the MTU");
    expect([fileOf("nodename"), fileOf("mtu")]).toEqual(["node-1\n", "1350\n"]);
    const config = site.config({ nodename: undefined, ipam: { type: identity.ipamType } });
    const { interfaces } = await site.add(await site.makePod(), { config });
    expect(interfaces.map(({ mtu }) => mtu)).toEqual([1350, 1350]);
    expect(await tool("get", "wep", "-A", "-o", "jsonpath={.items[*].spec.node}")).toContain("node-1");

    const heldBackBy = [{ node: "node-2", version: EARLIER }];
    expect(await versions()).toEqual({ clientVersion: VERSION, clusterVersion: EARLIER, heldBackBy });
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);

    // The agent of the other node is upgraded.
    install({ nodename: "node-2" });
    const other = await startAgent(site.host);
    await pollUntil(() => other.log().includes("the version of the cluster"), "the agent to raise the version");
    expect(await versions()).toEqual({ clientVersion: VERSION, clusterVersion: VERSION });
    expect(fileOf("nodename")).toBe("node-2\n");
    await other.signal("TERM");
    await other.ended;
  });
});
