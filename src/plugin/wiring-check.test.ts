import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ip.ts";
import type { CniResult } from "../cni/result.ts";
import { EMPTY_RESULT } from "../cni/result.ts";
import { formatMac } from "../ip/mac.ts";
import type { Link } from "../linux/rtnetlink/link.ts";
import { expectedWiring } from "./expected-wiring.ts";
import { wiringDifferences } from "./wiring-check.ts";
import { defaultRoute, planWiring, type WiringPlan } from "./wiring-plan.ts";
import type { SideState, WiringState } from "./wiring-state.ts";
import { workloadOf } from "./workload.ts";

const workload = workloadOf({ networkName: "net", containerId: "c1", ifname: "eth0" }, {}, "node");
const NETNS = "/run/netns/a";
const SETTINGS = { netns: NETNS, queues: 1, allowIpForwarding: false, sourcePrefixes: [] };
const plan = planWiring({
  ...workload,
  addresses: [address("10.0.0.5"), address("fd00::5")],
  routes: [defaultRoute(4), defaultRoute(6)],
  mtu: 1450,
  queues: 1,
  allowIpForwarding: false,
});

describe("wiringDifferences()", () => {
  test("finds none if the kernel matches the plan", () => {
    expect(wiringDifferences(plan, asPlanned(plan))).toEqual([]);
  });

  test("ignores what others added, and what the container may change itself", () => {
    const state = asPlanned(plan);
    const routes = [...state.container.routes, { destination: prefix("192.0.2.0/24"), linkIndex: 2 }];
    const sysctls = { ...state.container.sysctls, "net/ipv4/ip_forward": "1" };

    expect(wiringDifferences(plan, { ...state, container: { ...state.container, routes, sysctls } })).toEqual([]);
  });

  test("accepts a route with a lower priority than another interface's", () => {
    const state = asPlanned(plan);
    const routes = state.container.routes.map((route) => ({ ...route, priority: 2002 }));

    expect(wiringDifferences(plan, { ...state, container: { ...state.container, routes } })).toEqual([]);
  });

  test("reports one difference for a side that is missing", () => {
    const nothing: SideState = { addresses: [], neighbours: [], routes: [], sysctls: {} };

    expect(wiringDifferences(plan, { host: nothing, container: nothing })).toEqual([
      `host interface "${workload.hostInterface}" is missing`,
      'interface "eth0" is missing',
    ]);
  });

  test("reports every difference at once", () => {
    const state = asPlanned(plan);
    const bare: SideState = { ...state.container, addresses: [], neighbours: [], routes: [], sysctls: {} };
    const link = { ...bare.link, isUp: false, mtu: 1500, mac: Uint8Array.of(2, 0, 0, 0, 0, 1) } as Link;

    expect(wiringDifferences(plan, { ...state, container: { ...bare, link } })).toEqual([
      'interface "eth0" is down',
      `interface "eth0" has MAC 02:00:00:00:00:01 instead of ${formatMac(workload.mac)}`,
      'interface "eth0" has MTU 1500 instead of 1450',
      'interface "eth0" lacks address 10.0.0.5/32',
      'interface "eth0" lacks address fd00::5/128',
      'interface "eth0" lacks neighbour entry 169.254.1.1',
      'interface "eth0" lacks neighbour entry fe80::ecee:eeff:feee:eeee',
      'interface "eth0" lacks the route to 169.254.1.1/32',
      'interface "eth0" lacks the route to 0.0.0.0/0',
      'interface "eth0" lacks the route to ::/0',
      'sysctl "net/ipv6/conf/all/disable_ipv6" of the container is "" instead of "0"',
      'sysctl "net/ipv6/conf/default/disable_ipv6" of the container is "" instead of "0"',
      'sysctl "net/ipv6/conf/lo/disable_ipv6" of the container is "" instead of "0"',
    ]);
  });
});

describe("expectedWiring()", () => {
  const result: CniResult = {
    ...EMPTY_RESULT,
    interfaces: [
      { name: workload.hostInterface, mac: "ee:ee:ee:ee:ee:ee" },
      { name: "eth0", mac: formatMac(workload.mac), sandbox: NETNS, mtu: 1450 },
    ],
    ips: [
      { address: "10.0.0.5/32", interface: 1 },
      { address: "fd00::5/128", interface: 1 },
    ],
    routes: [
      { destination: "0.0.0.0/0", gateway: "169.254.1.1" },
      { destination: "::/0", gateway: "fe80::ecee:eeff:feee:eeee" },
    ],
  };

  test("returns the plan of ADD", () => {
    const expected = expectedWiring(workload, result, SETTINGS);

    expect(expected.plan).toEqual(plan);
    expect(expected.differences).toEqual([]);
  });

  test("ignores what other plugins of the chain added", () => {
    const more: CniResult = {
      ...result,
      interfaces: [...result.interfaces, { name: "ifb0" }],
      ips: [...result.ips, { address: "192.0.2.7/32", interface: 2 }],
      routes: [...result.routes, { destination: "192.0.2.0/24", gateway: "10.9.9.9" }],
    };

    expect(expectedWiring(workload, more, SETTINGS).plan).toEqual(plan);
  });

  test.each([
    ["another sandbox", { interfaces: result.interfaces.map((each) => ({ ...each, sandbox: "/other" })) }, /CNI_NETNS/],
    ["no interface", { interfaces: [] }, /does not contain interface "eth0"/],
    ["another MAC", { interfaces: result.interfaces.map((each) => ({ ...each, mac: "02:00:00:00:00:09" })) }, /MAC/],
    ["no address", { ips: [] }, /does not contain an address/],
  ])("reports a result with %s", (_, more, said) => {
    expect(expectedWiring(workload, { ...result, ...more }, SETTINGS).differences.join("; ")).toMatch(said);
  });
});

/** The kernel's state according to the plan. */
function asPlanned({ host, container, mtu }: WiringPlan): WiringState {
  const link = (side: WiringPlan["host"] | WiringPlan["container"], index: number): Link => ({
    index,
    name: side.name,
    isUp: true,
    mtu: mtu ?? 1500,
    mac: side.mac,
    kind: "veth",
    transmitQueues: 1,
    receiveQueues: 1,
    ...("mark" in side ? { alias: side.mark } : {}),
  });
  const sysctlsOf = (side: WiringPlan["host"] | WiringPlan["container"]) =>
    Object.fromEntries(side.sysctls.map(({ name, value }) => [name, value]));
  return {
    host: {
      link: link(host, 1),
      addresses: [],
      neighbours: host.neighbours.map((each) => ({ ...each, linkIndex: 1, isPermanent: true })),
      routes: host.routes.map((route) => ({ ...route, linkIndex: 1 })),
      sysctls: sysctlsOf(host),
    },
    container: {
      link: link(container, 2),
      addresses: container.addresses.map((each) => ({ ...each, linkIndex: 2, scope: "universe", isTentative: false })),
      neighbours: container.neighbours.map((each) => ({ ...each, linkIndex: 2, isPermanent: true })),
      routes: container.routes.map((route) => ({ ...route, linkIndex: 2 })),
      sysctls: sysctlsOf(container),
    },
  };
}
