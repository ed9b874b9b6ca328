/** A pool that overlaps the network that the host itself is in: the host's addresses and those of its gateways are never assigned. */
import { describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";

const UPLINK = `
ip netns add vt-router
ip link add uplink type veth peer name eth0 netns vt-router
ip link set uplink up
ip -n vt-router link set eth0 up
ip address add 10.71.0.1/24 dev uplink
ip address add fd71::1/64 dev uplink nodad
ip route add default via 10.71.0.2
ip route add default via fd71::2
ip route add 192.0.2.128/25 via 10.71.0.3
ip route add 198.51.100.0/24 nexthop via 10.71.0.2 nexthop via 10.71.0.4
ip route add fd99::/64 via fd71::3
ip route add fd98::/64 nexthop via fd71::2 nexthop via fd71::4
`;
const TAKEN = ["10.71.0.1", "10.71.0.2", "10.71.0.3", "10.71.0.4", "fd71::1", "fd71::2", "fd71::3", "fd71::4"];
const POOLS = [
  poolChange("home", "10.71.0.0/29", { blockSize: 29 }),
  poolChange("home6", "fd71::/125", { blockSize: 125 }),
  nodeChange("node-1"),
];

describe("a pool that overlaps the host's own network", () => {
  testNeeding(hostProblem())("gives pods every address but those of the host and its gateways", async () => {
    await using site = await openPluginSite("embedded", POOLS);
    await site.host.must(["sh", "-ec", UPLINK]);
    const seen = new Set<string>();
    for (;;) {
      const finished = await site.call("ADD", await site.makePod());
      if (finished.code !== 0) {
        const { code, details } = failureOf(finished);
        expect([code, details]).toEqual([
          102,
          expect.stringMatching(/of this host and its gateway are not used: .*1, .*2/),
        ]);
        break;
      }
      for (const { address } of JSON.parse(finished.stdout).ips) seen.add(address.split("/")[0]);
    }
    expect(seen.size).toBeGreaterThanOrEqual(6);
    for (const taken of TAKEN) expect(seen).not.toContain(taken);
  });

  testNeeding(hostProblem())("refuses such an address when it is asked for by name", async () => {
    await using site = await openPluginSite("embedded", POOLS);
    await site.host.must(["sh", "-ec", UPLINK]);
    const config = site.config({ ipam: { type: identity.ipamType } });
    for (const address of ["10.71.0.1", "10.71.0.2", "10.71.0.3", "10.71.0.4"]) {
      const pod = await site.makePod({ args: `IP=${address}` });
      const failure = failureOf(await site.call("ADD", pod, { config }));
      expect([failure.code, failure.msg]).toEqual([104, expect.stringContaining(address)]);
    }
  });

  testNeeding(hostProblem())("is warned about when it is applied on the host", async () => {
    await using site = await openPluginSite("embedded", [nodeChange("node-1")]);
    await site.host.must(["sh", "-ec", UPLINK]);
    const pool = { apiVersion: `${identity.apiGroup}/v3`, kind: "IPPool", metadata: { name: "home" } };
    const { code, stderr } = await site.host.run(
      [builtProgram(identity.adminTool), "apply", "--datastore-type", "embedded", "-f", "-"],
      { stdin: JSON.stringify({ ...pool, spec: { cidr: "10.71.0.0/16" } }) },
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining("10.71.0.1/24")]);
  });
});
