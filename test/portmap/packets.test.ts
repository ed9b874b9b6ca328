/** Packets to host ports, with real main plugins, on a private host. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { askTcp, askUdp, openUdpClient, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import {
  CLIENT4,
  CLIENT6,
  HOST4,
  HOST6,
  type MainPlugin,
  mainPluginProblem,
  OTHER_HOST4,
  openPortHost,
  type PortHost,
} from "./port-host.ts";

describe.each(["own", "ptp", "bridge"] satisfies MainPlugin[])("host ports after %s", (main) => {
  const needs = [hostProblem(), program("nft"), mainPluginProblem(main)];
  const testPackets = testNeeding(...needs);
  let world: PortHost;
  beforeAll(async () => {
    if (needs.every((need) => need === undefined)) world = await openPortHost();
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  testPackets("reach the pod from outside, the host, 127.0.0.1, other pods and the pod itself", async () => {
    const network = world.network({ main });
    const web = await world.makePod("web", [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }]);
    const other = await world.makePod("other", []);
    const { ips } = await network.add(web.attachment);
    await network.add(other.attachment);
    const [own4 = "", own6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
    using _server = serveTcp(web.netns, "web", 80);

    expect(await askTcp(world.client, HOST4, 8080)).toBe(`web ${CLIENT4}`);
    expect(await askTcp(world.client, OTHER_HOST4, 8080)).toBe(`web ${CLIENT4}`);
    expect(await askTcp(world.client, HOST6, 8080)).toBe(`web ${CLIENT6}`);
    expect(await askTcp(world.netns, HOST4, 8080)).toStartWith("web ");
    expect(await askTcp(world.netns, HOST6, 8080)).toStartWith("web ");
    expect(await askTcp(world.netns, "127.0.0.1", 8080)).toStartWith("web ");
    expect(await askTcp(world.netns, "127.0.0.5", 8080)).toStartWith("web ");
    expect(await askTcp(world.netns, own4, 80)).toStartWith("web ");
    expect(await askTcp(other.netns, HOST4, 8080)).toStartWith("web ");
    expect(await askTcp(other.netns, HOST6, 8080)).toStartWith("web ");
    expect(await askTcp(web.netns, HOST4, 8080)).toStartWith("web ");
    expect(await askTcp(web.netns, HOST6, 8080)).toStartWith("web ");
    expect(await askTcp(web.netns, own6, 80)).toStartWith("web ");
    expect(await askTcp(world.netns, "::1", 8080)).toBe("refused");
    expect(await askTcp(world.client, HOST4, 8081)).toBe("refused");
    expect(await askUdp(world.client, HOST4, 8080)).toBe("silence");

    await network.check(web.attachment);
    await network.del(web.attachment);
    expect(await askTcp(world.client, HOST4, 8080)).toBe("refused");
    await network.del(web.attachment);
    await network.del(other.attachment);
    expect(await world.kept()).toEqual([]);
  });

  testPackets("redirect UDP clients to the next pod at once, although they keep their source port", async () => {
    const network = world.network({ main });
    const mappings = [{ hostPort: 5353, containerPort: 53, protocol: "udp" }];
    using client = await openUdpClient(world.client);
    expect(await client.ask(HOST4, 5353)).toBe("silence");
    for (const name of ["first", "second"]) {
      const pod = await world.makePod(name, mappings);
      await network.add(pod.attachment);
      using _server = await serveUdp(pod.netns, name, 53);
      expect(await client.ask(HOST4, 5353)).toBe(`${name} ${CLIENT4}`);
      await network.del(pod.attachment);
    }
    expect(await client.ask(HOST4, 5353)).toBe("silence");
    expect(await world.kept()).toEqual([]);
  });
});
