/** The built node agent with BIRD on two nodes of a site: what the resources say reaches the kernel of the other node. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { birdRoutes } from "./bird-routes.ts";
import { setMode } from "./modes.ts";
import { resource } from "./resource.ts";
import type { NetworkNode } from "./routed-network.ts";
import { openRoutedSite, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd", program("bird")];
const test = testNeeding(...needs);

describe("node agents with BIRD", () => {
  let site: RoutedSite;
  let one: NetworkNode;
  let two: NetworkNode;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterEtcd, agents: ["node-1", "node-2"] });
    [one, two] = [site.network.node("node-1"), site.network.node("node-2")];
    await setMode(site, { vxlan: "Never", bgp: "Enabled" });
    await pollUntil(async () => (await status(two)).stdout.split("Established").length === 3, "two sessions", 60_000);
  }, 90_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("a block is in the kernel of the other node soon after its first pod", async () => {
    await site.addPod("node-1/first");

    for (const gateway of one.addresses) await learns(two, ` via ${gateway} dev eth0`);
  });

  test("a peer without a readable password is named, and the other sessions stay", async () => {
    const password = { file: "/etc/no-such-password" };
    await site.apply(resource("BGPPeer", "router", { peerIP: "10.1.1.254", asNumber: 65000, password }));
    await pollUntil(async () => (await status(one)).stdout.includes("Problem: "), "the problem");

    const { code, stdout } = await status(one);
    expect(stdout).toContain('file "/etc/no-such-password" does not exist on this node');
    expect(stdout.split("Established")).toHaveLength(3);
    expect(code).toBe(0);
    await site.admin("delete bgppeer router");
  });

  test("bgp: Disabled ends BIRD and its routes, and Enabled starts it again", async () => {
    await site.apply(resource("NodeAgentConfiguration", "default", { bgp: "Disabled" }));
    await pollUntil(async () => (await status(two)).stdout.includes("not needed"), "the end of BIRD");
    await pollUntil(async () => (await birdRoutes(two.host)) === "", "no routes of BIRD");
    expect((await status(two)).code).toBe(0);
    expect((await two.host.run(["ps", "-C", "bird"])).code).toBe(1);

    await site.apply(resource("NodeAgentConfiguration", "default", { bgp: "Enabled" }));
    for (const gateway of one.addresses) await learns(two, ` via ${gateway} dev eth0`);
  });
});

function status({ host }: NetworkNode) {
  return host.run([builtProgram(identity.adminTool), "node", "status"]);
}

async function learns(node: NetworkNode, route: string): Promise<void> {
  await pollUntil(async () => (await birdRoutes(node.host)).includes(route), `"${route}" on ${node.name}`);
}
