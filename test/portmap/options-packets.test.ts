/** The effect of a mapping's and the plugin's options on packets. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { askTcp, askUdp, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { sctpPortSeen } from "../support/sctp.ts";
import {
  CLIENT4,
  CLIENT6,
  HOST4,
  HOST6,
  mainPluginProblem,
  type NetworkOptions,
  OTHER_HOST4,
  openPortHost,
  type Pod,
  type PortHost,
} from "./port-host.ts";
import { port } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft"), mainPluginProblem()];
const testOptions = testNeeding(...needs);

describe("host ports", () => {
  let world: PortHost;
  let clear: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    if (needs.every((need) => need === undefined)) world = await openPortHost();
  });
  afterEach(async () => {
    for (const each of clear.reverse()) await each();
    clear = [];
    if (world !== undefined) expect(await world.kept()).toEqual([]);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  let count = 0;
  async function podWith(ports: readonly ReturnType<typeof port>[], options: NetworkOptions = {}): Promise<Pod> {
    count += 1;
    const network = world.network(options);
    const pod = await world.makePod(`pod${count}`, ports);
    await network.add(pod.attachment);
    clear.push(() => network.del(pod.attachment));
    return pod;
  }

  testOptions("with a hostIP are served only on that address, only in its family", async () => {
    const ports = [port(81, HOST4), port(82, HOST6), port(83, "0.0.0.0"), port(84, "::"), port(85, "127.0.0.1")];
    const pod = await podWith(ports);
    using _server = serveTcp(pod.netns, "pod", 80);
    const ask = async (number: number) => [
      await askTcp(world.client, HOST4, number),
      await askTcp(world.client, OTHER_HOST4, number),
      await askTcp(world.client, HOST6, number),
    ];
    expect(await ask(81)).toEqual([`pod ${CLIENT4}`, "refused", "refused"]);
    expect(await ask(82)).toEqual(["refused", "refused", `pod ${CLIENT6}`]);
    expect(await ask(83)).toEqual([`pod ${CLIENT4}`, `pod ${CLIENT4}`, "refused"]);
    expect(await ask(84)).toEqual(["refused", "refused", `pod ${CLIENT6}`]);
    expect(await ask(85)).toEqual(["refused", "refused", "refused"]);
    expect(await askTcp(world.netns, "127.0.0.1", 85)).toStartWith("pod ");
    expect(await askTcp(world.netns, HOST4, 85)).toBe("refused");
  });

  testOptions("of one number go to different pods for TCP and UDP, and for two addresses", async () => {
    const web = await podWith([port(80, HOST4)]);
    const other = await podWith([port(80, OTHER_HOST4), { ...port(80, undefined, "udp"), containerPort: 53 }]);
    using _web = serveTcp(web.netns, "web", 80);
    using _other = serveTcp(other.netns, "other", 80);
    using _names = await serveUdp(other.netns, "names", 53);
    expect(await askTcp(world.client, HOST4, 80)).toBe(`web ${CLIENT4}`);
    expect(await askTcp(world.client, OTHER_HOST4, 80)).toBe(`other ${CLIENT4}`);
    expect(await askUdp(world.client, HOST4, 80)).toBe(`names ${CLIENT4}`);
    expect(await askUdp(world.client, HOST6, 80)).toBe(`names ${CLIENT6}`);
  });

  testOptions("work with SCTP", async () => {
    const pod = await podWith([port(9000, undefined, "sctp")]);
    expect(await sctpPortSeen(world.client, pod.netns, HOST4, 9000)).toBe(80);
  });

  testOptions("without snat do not masquerade the pod's own connections, nor accept those from 127.0.0.1", async () => {
    const pod = await podWith([port(80)], { portmap: { snat: false } });
    using _server = serveTcp(pod.netns, "pod", 80);
    expect(await askTcp(world.client, HOST4, 80)).toBe(`pod ${CLIENT4}`);
    expect(await askTcp(pod.netns, HOST4, 80)).toBe("silence");
    expect(await askTcp(world.netns, "127.0.0.1", 80)).not.toStartWith("pod");
  });

  testOptions("with masqAll masquerade every client, in both families", async () => {
    const pod = await podWith([port(80)], { portmap: { masqAll: true } });
    using _server = serveTcp(pod.netns, "pod", 80);
    const seen4 = await askTcp(world.client, HOST4, 80);
    const seen6 = await askTcp(world.client, HOST6, 80);
    expect([seen4, seen6].every((seen) => seen.startsWith("pod "))).toBe(true);
    expect(seen4).not.toContain(CLIENT4);
    expect(seen6).not.toContain(CLIENT6);
    expect(await askTcp(pod.netns, HOST4, 80)).toStartWith("pod ");
    expect(await askTcp(world.netns, "127.0.0.1", 80)).toStartWith("pod ");
  });

  testOptions("otherwise keep clients' addresses, also those of other pods that the host routes", async () => {
    const pod = await podWith([port(80)]);
    const other = await podWith([]);
    using _server = serveTcp(pod.netns, "pod", 80);
    expect(await askTcp(other.netns, HOST4, 80)).toMatch(/^pod 10\.77\.0\.(?!1$)\d+$/);
  });

  testOptions("do not expose listeners on the host's 127.0.0.1 to pods or to the outside", async () => {
    const pod = await podWith([port(80)]);
    using _secret = serveTcp(world.netns, "secret", 7777, "127.0.0.1");
    expect(await askTcp(world.netns, "127.0.0.1", 7777)).toStartWith("secret");
    const { host } = world;
    const inPod = ["nsenter", `--net=${pod.attachment.netns}`];
    const settings = "for each in /proc/sys/net/ipv4/conf/*/route_localnet; do echo 1 > $each; done";
    await host.must([...inPod, "sh", "-ec", `ip address del 127.0.0.1/8 dev lo; ${settings}`]);
    await host.must([...inPod, "ip", "route", "add", "127.0.0.1/32", "via", "10.77.0.1"]);
    expect(await askTcp(pod.netns, "127.0.0.1", 7777)).toBe("silence");
  });
});
