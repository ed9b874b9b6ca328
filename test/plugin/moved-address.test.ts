/** An address that another node used until now: the host may still have the route to that node. */
import { describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite } from "../support/plugin-site.ts";

const UPLINK = `
ip link add uplink type veth peer name other
ip link set uplink up
ip link set other up
ip address add 192.168.72.1/24 dev uplink
ip address add fd27::1/64 dev uplink nodad
`;
const PLACES = [
  ["10.72.0.9", "192.168.72.2"],
  ["fd72::9", "fd27::2"],
] as const;
const RECORDS = [
  poolChange("one", "10.72.0.9/32", { blockSize: 32 }),
  poolChange("one6", "fd72::9/128", { blockSize: 128 }),
  nodeChange("node-1"),
];

describe("an address with a route in its place", () => {
  testNeeding(hostProblem())("gets its own if the present one leads to another node, otherwise ADD fails", async () => {
    await using site = await openPluginSite("embedded", RECORDS);
    await site.host.must(["sh", "-ec", UPLINK]);
    const route = (verb: string, protocol: string) =>
      PLACES.map(([address, gateway]) => `ip route ${verb} ${address} via ${gateway} proto ${protocol}\n`).join("");
    const pod = await site.makePod();

    await site.host.must(["sh", "-ec", route("add", "static")]);
    expect(failureOf(await site.call("ADD", pod))).toMatchObject({ msg: expect.stringContaining("already has one") });
    expect(await site.host.must(["ip", "route"])).toContain("10.72.0.9 via 192.168.72.2");
    await site.host.must(["sh", "-ec", route("del", "static")]);

    await site.host.must(["sh", "-ec", route("add", "86")]);
    await site.add(pod);
    for (const [address] of PLACES) {
      const routes = await site.host.must(["ip", address.includes(":") ? "-6" : "-4", "route", "show", address]);
      expect(routes.trim().split("\n")).toEqual([expect.stringMatching(/ dev vend\S+ /)]);
      expect(routes).not.toContain("via");
      await site.host.must(["ping", "-c1", "-W2", address]);
    }
    await site.quietly("DEL", pod);
  });
});
