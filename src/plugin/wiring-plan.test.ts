import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ip.ts";
import { formatAddress } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import { formatInterfaceAddress, formatPrefix } from "../ip/prefix.ts";
import { defaultRoute, type PlannedRoute, planWiring, type Wiring, type WiringPlan } from "./wiring-plan.ts";

const wiring: Wiring = {
  hostInterface: "vend0",
  mark: "net/c/eth0",
  ifname: "eth0",
  mac: Uint8Array.of(2, 0, 0, 0, 0, 5),
  addresses: [address("10.0.0.5"), address("fd00::5")],
  routes: [defaultRoute(4), defaultRoute(6)],
  queues: 1,
  allowIpForwarding: false,
};

describe("planWiring()", () => {
  test("plans both sides for two families", () => {
    expect(linesOf(planWiring(wiring))).toEqual([
      "host link vend0 ee:ee:ee:ee:ee:ee queues 1 mtu kernel's alias net/c/eth0",
      "host required net/ipv4/conf/vend0/rp_filter = 1",
      "host required net/ipv4/ip_forward = 1",
      "host required net/ipv4/conf/vend0/forwarding = 1",
      "host required net/ipv4/conf/vend0/proxy_arp = 1",
      "host optional net/ipv4/neigh/vend0/proxy_delay = 0",
      "host required net/ipv6/conf/all/forwarding = 1",
      "host required net/ipv6/conf/vend0/disable_ipv6 = 0",
      "host initial net/ipv6/conf/vend0/accept_dad = 0",
      "host required net/ipv6/conf/vend0/forwarding = 1",
      "host required net/ipv6/conf/vend0/proxy_ndp = 1",
      "host optional net/ipv6/conf/vend0/accept_ra = 0",
      "host neighbour 10.0.0.5 02:00:00:00:00:05",
      "host neighbour fd00::5 02:00:00:00:00:05",
      "host route 10.0.0.5/32 scope link",
      "host route fd00::5/128 scope universe",
      "container link eth0 02:00:00:00:00:05",
      "container initial net/ipv4/ip_forward = 0",
      "container required net/ipv6/conf/all/disable_ipv6 = 0",
      "container required net/ipv6/conf/default/disable_ipv6 = 0",
      "container required net/ipv6/conf/lo/disable_ipv6 = 0",
      "container initial net/ipv6/conf/eth0/accept_dad = 0",
      "container initial net/ipv6/conf/all/forwarding = 0",
      "container address 10.0.0.5/32",
      "container address fd00::5/128",
      "container neighbour 169.254.1.1 ee:ee:ee:ee:ee:ee",
      "container neighbour fe80::ecee:eeff:feee:eeee ee:ee:ee:ee:ee:ee",
      "container route 169.254.1.1/32 scope link",
      "container route 0.0.0.0/0 via 169.254.1.1",
      "container route ::/0 via fe80::ecee:eeff:feee:eeee",
    ]);
  });

  test("switches the reverse path filter off only for other sources of IPv4", () => {
    const setting = (...prefixes: readonly string[]) => {
      const { host } = planWiring({ ...wiring, sourcePrefixes: prefixes.map(prefix) });
      return [host.ipv4?.reversePathFilter, host.sysctls.find(({ name }) => name.endsWith("/rp_filter"))?.value];
    };

    expect(setting()).toEqual([1, "1"]);
    expect(setting("2001:db8::/64")).toEqual([1, "1"]);
    expect(setting("2001:db8::/64", "198.51.100.0/24")).toEqual([0, "0"]);
  });

  test("does not configure a family without an address", () => {
    const lines = linesOf(planWiring({ ...wiring, addresses: [address("10.0.0.5")] }));

    expect(lines.filter((line) => /ipv6|fd00|fe80|::/.test(line))).toEqual([
      "host optional net/ipv6/conf/vend0/accept_ra = 0",
    ]);
  });

  test("always writes forwarding in the container", () => {
    const plan = planWiring({ ...wiring, allowIpForwarding: true });
    const forwarding = plan.container.sysctls.filter(({ name }) => /forward/.test(name));

    expect(forwarding.map(({ name, value }) => `${name}=${value}`)).toEqual([
      "net/ipv4/ip_forward=1",
      "net/ipv6/conf/all/forwarding=1",
    ]);
  });

  test("keeps the fields of a route; table 0 is the main table", () => {
    const routes = [{ ...defaultRoute(4), mtu: 1400, advertisedSegment: 1360, priority: 7, table: 0 }];
    const [, route] = planWiring({ ...wiring, routes }).container.routes;

    expect(route).toMatchObject({ mtu: 1400, advertisedSegment: 1360, priority: 7 });
    expect(route).not.toHaveProperty("table");
  });

  test("gives both ends the same MTU and queues", () => {
    expect(planWiring({ ...wiring, mtu: 1400, queues: 4 })).toMatchObject({ mtu: 1400, queues: 4 });
  });
});

function linesOf({ host, container, mtu, queues }: WiringPlan): readonly string[] {
  const sysctls = (side: string, { sysctls }: WiringPlan["host"] | WiringPlan["container"]) =>
    sysctls.map(({ need, name, value }) => `${side} ${need} ${name} = ${value}`);
  return [
    `host link ${host.name} ${formatMac(host.mac)} queues ${queues} mtu ${mtu ?? "kernel's"} alias ${host.mark}`,
    ...sysctls("host", host),
    ...host.neighbours.map((each) => `host neighbour ${formatAddress(each.address)} ${formatMac(each.mac)}`),
    ...host.routes.map((route) => `host ${routeLine(route)}`),
    `container link ${container.name} ${formatMac(container.mac)}`,
    ...sysctls("container", container),
    ...container.addresses.map((each) => `container address ${formatInterfaceAddress(each)}`),
    ...container.neighbours.map((each) => `container neighbour ${formatAddress(each.address)} ${formatMac(each.mac)}`),
    ...container.routes.map((route) => `container ${routeLine(route)}`),
  ];
}

function routeLine({ destination, gateway, scope }: PlannedRoute): string {
  const way = gateway === undefined ? `scope ${scope}` : `via ${formatAddress(gateway)}`;
  return `route ${formatPrefix(destination)} ${way}`;
}
