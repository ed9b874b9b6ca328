/** What a server outside sees of pods: the host's address if their pool has natOutgoing, else their own. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { askTcpWithin, openUdpClient, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";

const HOST4 = "198.51.100.1";
const HOST6 = "fd00:2::1";
const OUTSIDE4 = "198.51.100.2";
const OUTSIDE6 = "fd00:2::2";
const TABLE = ["list", "table", "inet", identity.natTable];

/** The outside knows a way back to the pods: without NAT it sees their own addresses. */
const OUTSIDE = `
ip netns add vt-outside
ip link add outside type veth peer name eth0 netns vt-outside
ip link set outside up
ip address add ${HOST4}/24 dev outside
ip address add ${HOST6}/64 dev outside nodad
ip -n vt-outside link set lo up
ip -n vt-outside link set eth0 up
ip -n vt-outside address add ${OUTSIDE4}/24 dev eth0
ip -n vt-outside address add ${OUTSIDE6}/64 dev eth0 nodad
ip -n vt-outside route add 10.0.0.0/8 via ${HOST4}
ip -n vt-outside route add fd60::/12 via ${HOST6}
`;

const pools = (natOutgoing: { readonly blue: boolean; readonly red: boolean }) => [
  poolChange("blue", "10.61.0.0/24", { natOutgoing: natOutgoing.blue }),
  poolChange("blue6", "fd61::/112", { natOutgoing: natOutgoing.blue }),
  poolChange("red", "10.62.0.0/24", { natOutgoing: natOutgoing.red }),
  poolChange("red6", "fd62::/112", { natOutgoing: natOutgoing.red }),
];

/** Longer than a lost SYN takes to be sent again: a kernel with many new links loses some. Every request here gets a reply. */
const askTcp = (netns: string, address: string, port: number) => askTcpWithin(5_000, netns, address, port);

const needs = [hostProblem(), program("nft")];
const testPackets = testNeeding(...needs);

describe("natOutgoing", () => {
  let site: PluginSite;
  let outside: string;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded", [...pools({ blue: true, red: false }), nodeChange("node-1")]);
    await site.host.must(["sh", "-ec", OUTSIDE]);
    outside = site.host.view("/run/netns/vt-outside");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const configOf = (color: string) => ({
    config: site.config({
      ipam: { type: identity.ipamType, assign_ipv6: "true", ipv4_pools: [color], ipv6_pools: [`${color}6`] },
    }),
  });
  const attach = async (color: string) => {
    const pod = await site.makePod();
    const { ips } = await site.add(pod, configOf(color));
    const [own4 = "", own6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
    return { pod, netns: site.host.view(pod.netns), own4, own6 };
  };
  const detach = (color: string, pod: Pod) => site.quietly("DEL", pod, configOf(color));
  const table = async () => (await site.host.run(["nft", ...TABLE])).stdout;

  testPackets("hides pods of such a pool behind the host, of both families, and no others", async () => {
    const [blue, red] = [await attach("blue"), await attach("red")];
    using _server = serveTcp(outside, "outside", 80);
    using _udp = await serveUdp(outside, "outside", 53);
    using client = await openUdpClient(blue.netns);

    expect(await askTcp(blue.netns, OUTSIDE4, 80)).toBe(`outside ${HOST4}`);
    expect(await askTcp(blue.netns, OUTSIDE6, 80)).toBe(`outside ${HOST6}`);
    expect(await client.ask(OUTSIDE4, 53)).toBe(`outside ${HOST4}`);
    expect(await askTcp(red.netns, OUTSIDE4, 80)).toBe(`outside ${red.own4}`);
    expect(await askTcp(red.netns, OUTSIDE6, 80)).toBe(`outside ${red.own6}`);
    await detach("blue", blue.pod);
    await detach("red", red.pod);
  });

  testPackets("changes nothing between pods, of one pool or of two", async () => {
    const [blue, other, red] = [await attach("blue"), await attach("blue"), await attach("red")];
    using _red = serveTcp(red.netns, "red", 80);
    using _blue = serveTcp(other.netns, "other", 80);

    expect(await askTcp(blue.netns, red.own4, 80)).toBe(`red ${blue.own4}`);
    expect(await askTcp(blue.netns, red.own6, 80)).toBe(`red ${blue.own6}`);
    expect(await askTcp(blue.netns, other.own4, 80)).toBe(`other ${blue.own4}`);
    expect(await askTcp(blue.netns, other.own6, 80)).toBe(`other ${blue.own6}`);
    for (const { pod } of [blue, other]) await detach("blue", pod);
    await detach("red", red.pod);
  });

  testPackets("follows the pools with the next ADD, and leaves no table if none masquerades", async () => {
    const blue = await attach("blue");
    using _server = serveTcp(outside, "outside", 80);
    await site.store.put(pools({ blue: false, red: true }));
    const red = await attach("red");
    expect(await askTcp(blue.netns, OUTSIDE4, 80)).toBe(`outside ${blue.own4}`);
    expect(await askTcp(red.netns, OUTSIDE6, 80)).toBe(`outside ${HOST6}`);

    await site.store.put(pools({ blue: false, red: false }));
    const second = await attach("blue");
    expect(await askTcp(red.netns, OUTSIDE4, 80)).toBe(`outside ${red.own4}`);
    expect(await table()).toBe("");

    await site.store.put(pools({ blue: true, red: false }));
    const third = await attach("red");
    expect(await askTcp(second.netns, OUTSIDE6, 80)).toBe(`outside ${HOST6}`);
    for (const { pod } of [blue, second]) await detach("blue", pod);
    for (const { pod } of [red, third]) await detach("red", pod);
  });

  testPackets("costs a pod nothing: ADD and DEL leave the table as it is", async () => {
    const first = await attach("blue");
    const before = await table();
    expect(before).toContain("10.61.0.0/24");
    const second = await attach("blue");
    await detach("blue", first.pod);
    await detach("blue", second.pod);
    expect(await table()).toBe(before);
  });

  testPackets("comes back with the next ADD after others have flushed or changed the table", async () => {
    const first = await attach("blue");
    const before = await table();
    using _server = serveTcp(outside, "outside", 80);
    for (const damage of ["flush ruleset", `flush table inet ${identity.natTable}`]) {
      await site.host.must(["nft", damage]);
      expect(await askTcp(first.netns, OUTSIDE4, 80)).toBe(`outside ${first.own4}`);
      const next = await attach("red");
      expect(await askTcp(first.netns, OUTSIDE4, 80)).toBe(`outside ${HOST4}`);
      expect(await table()).toBe(before);
      await detach("red", next.pod);
    }
    await detach("blue", first.pod);
  });

  testPackets("is left alone by networks with another IPAM plugin", async () => {
    const blue = await attach("blue");
    const before = await table();
    const ranges = [[{ subnet: "10.99.0.0/24" }]];
    const config = site.config({ cniVersion: "1.0.0", name: "other", ipam: { type: "host-local", ranges } });
    const pod = await site.makePod();
    await site.add(pod, { config });
    expect(await table()).toBe(before);
    await site.quietly("DEL", pod, { config });
    await detach("blue", blue.pod);
  });
});
