/**
 * Shaping in a list of real plugins, after our main plugin and after others, before and
 * after host ports: the container with rates is shaped, its neighbour is not.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/cni/json.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, upstreamPlugins } from "../support/network-under-test.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type RuntimeAttachment, startRuntime } from "../support/runtime-driver.ts";

const upstream = await upstreamPlugins();

const HOST = "192.0.2.1";
/** 25 kB at 10 kB/s arrive more than a second late; without shaping they arrive at once. */
const SLOW = { ingressRate: 80_000, ingressBurst: 8000, egressRate: 80_000, egressBurst: 8000 };
const LARGE = "x".repeat(25_000);

const MAINS = [identity.product, "ptp", "bridge"] as const;
const ORDERS = [
  ["portmap", "bandwidth"],
  ["bandwidth", "portmap"],
] as const;

/** In `make test` our main plugin shows both orders, and the others one each. */
const ROWS = MAINS.flatMap((main, index) =>
  proofSize({ everyDay: main === identity.product ? ORDERS : ORDERS.slice(index % 2).slice(0, 1), soak: ORDERS }).map(
    (order) => ({ main, order }),
  ),
);

describe.each(ROWS)("$main, $order.0, $order.1", ({ main, order }) => {
  const ofUpstream = main !== identity.product && "missing" in upstream ? upstream.missing : undefined;
  const needs = [hostProblem(), program("tc"), program("nft"), ofUpstream];
  const testChain = testNeeding(...needs);
  let site: PluginSite;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded");
    const link = (name: string, target: string) => symlinkSync(target, site.host.view(join(BIN_DIRECTORY, name)));
    if ("path" in upstream) for (const name of ["ptp", "bridge"]) link(name, join(upstream.path, name));
    for (const name of [identity.product, "host-local", "portmap", "bandwidth"]) link(name, builtProgram(name));
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attachment = async (capabilities: JsonObject): Promise<RuntimeAttachment & { view: string }> => {
    const { containerId, netns } = await site.makePod();
    return { containerId, netns, capabilities, view: site.host.view(netns) };
  };

  testChain("shapes one container and not its neighbour, keeps its ports reachable and cleans up", async () => {
    const before = await site.left();
    const network = startRuntime({
      conflist: conflistOf(site, main, order),
      pluginDirectory: BIN_DIRECTORY,
      run: site.host.run,
    });
    const ports = [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }];
    const shaped = await attachment({ bandwidth: SLOW, portMappings: ports });
    const free = await attachment({});
    const addressOf = async (each: RuntimeAttachment) => (await network.add(each)).ips[0]?.address.split("/")[0] ?? "";
    const [address, freeAddress] = [await addressOf(shaped), await addressOf(free)];

    using _small = serveTcp(shaped.view, "small", 80, "0.0.0.0");
    using _ofShaped = serveTcp(shaped.view, LARGE, 81, "0.0.0.0");
    using _ofFree = serveTcp(free.view, LARGE, 81, "0.0.0.0");
    using _ofHost = serveTcp(site.host.netns, LARGE, 82, "0.0.0.0");
    using _smallOfHost = serveTcp(site.host.netns, "small", 83, "0.0.0.0");
    expect(await askTcp(site.host.netns, HOST, 8080)).toStartWith("small");
    expect((await askTcp(site.host.netns, freeAddress, 81)).length).toBeGreaterThan(LARGE.length);
    expect(await askTcp(shaped.view, HOST, 83)).toStartWith("small");
    expect((await askTcp(free.view, HOST, 82)).length).toBeGreaterThan(LARGE.length);
    expect(await askTcp(site.host.netns, address, 81)).toBe("silence");
    expect(await askTcp(shaped.view, HOST, 82)).toBe("silence");
    expect((await site.host.must(["tc", "qdisc", "show"])).match(/ rate \S+/g)).toEqual([
      " rate 80Kbit",
      " rate 80Kbit",
    ]);

    for (const each of [shaped, free]) await network.check(each);
    for (const each of [shaped, free, shaped]) await network.del(each);
    expect((await site.left()).filter((line) => !line.includes("shaped0"))).toEqual([...before]);
  });
});

function conflistOf(site: PluginSite, main: string, order: readonly string[]): JsonObject {
  const entries: Readonly<Record<string, JsonObject>> = {
    [identity.product]: site.config(),
    ptp: { ipam: hostLocal() },
    bridge: { bridge: "shaped0", isGateway: true, ipam: hostLocal() },
    portmap: { snat: true, capabilities: { portMappings: true } },
    bandwidth: { capabilities: { bandwidth: true } },
  };
  const plugins = [main, ...order].map((type) => ({ ...entries[type], type }));
  return { cniVersion: "1.1.0", name: "net", plugins };
}

function hostLocal(): JsonObject {
  const ranges = [[{ subnet: "10.77.0.0/24" }]];
  return { type: "host-local", dataDir: "/var/lib/cni/networks", ranges, routes: [{ dst: "0.0.0.0/0" }] };
}
