import { describe, expect, test } from "bun:test";
import { address } from "../../../test/support/ip.ts";
import { identity } from "../../identity.ts";
import { formatAddress } from "../../ip/address.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { KnownVxlan, LinkWithVxlan } from "../../linux/rtnetlink/vxlan.ts";
import type { PlannedTunnel } from "../../routing/plan.ts";
import { deviceStep, givenAddresses, ipipAlias, isOwnIpip } from "./tunnel-device.ts";

const link = (more: Partial<Link>): Link => ({
  ...{ index: 9, name: identity.vxlanDevice, isUp: true, mtu: 1450, mac: Uint8Array.fromHex("660000000001") },
  ...{ kind: "vxlan", transmitQueues: 1, receiveQueues: 1 },
  ...more,
});
const UNDERLYING = link({ index: 2, name: "eth0", mtu: 1500, kind: "veth" });
const local = address("192.168.5.1");
const VXLAN: PlannedTunnel = {
  ...{ name: "vxlan4", local, address: address("10.60.0.0"), mac: "66:00:00:00:00:01" },
  vxlan: { port: 4789, id: 4096 },
};
const IPIP: PlannedTunnel = { name: "ipip4", local, address: address("10.60.0.1") };
const present = (vxlan: Partial<KnownVxlan> = {}, more: Partial<Link> = {}): LinkWithVxlan => ({
  link: link(more),
  vxlan: { id: 4096, port: 4789, local, underlyingIndex: 2, learns: false, ...vxlan },
});
const tunl0 = (more: Partial<Link> = {}): LinkWithVxlan => ({
  link: link({ name: "tunl0", kind: "ipip", mtu: 1480, alias: `${identity.nodeAgent} 10.60.0.1`, ...more }),
});

const CREATE = `create link "${identity.vxlanDevice}"`;
const CHANGE = `change link "${identity.vxlanDevice}"`;
const CASES: readonly (readonly [
  title: string,
  tunnel: PlannedTunnel,
  present: LinkWithVxlan | undefined,
  actions: readonly string[],
])[] = [
  ["a missing device is created, with a loose reverse path filter", VXLAN, undefined, [CREATE, CHANGE]],
  ["a strict reverse path filter is changed", VXLAN, { ...present(), reversePathFilter: 1 }, [CHANGE]],
  ["a loose one stays", VXLAN, { ...present(), reversePathFilter: 2 }, []],
  ["a right one stays", VXLAN, present(), []],
  ["another address is changed", VXLAN, present({ local: address("192.168.5.9") }), [CHANGE]],
  ["another underlying link is changed", VXLAN, present({ underlyingIndex: 3 }), [CHANGE]],
  ["another MTU and MAC are changed together", VXLAN, present({}, { mtu: 1400, mac: new Uint8Array(6) }), [CHANGE]],
  ["one that is down goes up", VXLAN, present({}, { isUp: false }), [CHANGE]],
  ...([{ id: 7 }, { port: 8472 }, { learns: true }, { local: address("fd05::1") }] as const).map(
    (wrong) =>
      [
        `one with ${Object.keys(wrong).join()} ${String(Object.values(wrong)[0])} is created again`,
        VXLAN,
        present(wrong),
        [`delete link "${identity.vxlanDevice}"`, CREATE, CHANGE],
      ] as const,
  ),
  ["a missing IPIP device is created", IPIP, undefined, ['create link "tunl0"', 'change link "tunl0"']],
  [
    "the one that the module made goes up, with its MTU",
    IPIP,
    tunl0({ isUp: false, mtu: 1400 }),
    ['change link "tunl0"'],
  ],
  ["a right IPIP device stays", IPIP, tunl0(), []],
  [
    "one that another program or a former release set up gets our mark",
    IPIP,
    tunl0({ alias: "" }),
    ['change link "tunl0"'],
  ],
  [
    "one whose mark has no address, of a former release, gets it",
    IPIP,
    tunl0({ alias: identity.nodeAgent }),
    ['change link "tunl0"'],
  ],
];

describe("deviceStep()", () => {
  for (const [title, tunnel, found, actions] of CASES) {
    test(title, () => {
      const step = deviceStep(tunnel, UNDERLYING, found);
      expect(step.kind === "requests" && step.requests.map(({ action }) => action)).toEqual([...actions]);
    });
  }

  test("a link of another kind is not touched", () => {
    expect(deviceStep(VXLAN, UNDERLYING, { link: link({ kind: "veth" }) })).toEqual({
      kind: "problem",
      reason: `another interface has the name "${identity.vxlanDevice}"`,
    });
  });
});

describe("the alias of an IPIP device", () => {
  test.each([
    ["with the addresses that it has from us", ipipAlias([local, address("10.60.0.1")]), ["192.168.5.1", "10.60.0.1"]],
    ["of a former release, which names none", identity.nodeAgent, []],
  ])("%s", (_title, alias, addresses) => {
    expect(isOwnIpip({ kind: "ipip", alias })).toBe(true);
    expect(givenAddresses({ kind: "ipip", alias }).map(formatAddress)).toEqual(addresses);
  });

  test.each([
    ["of a similar name", { kind: "ipip", alias: `${identity.nodeAgent}-2 10.60.0.1` }],
    ["of a device of another kind", { kind: "veth", alias: ipipAlias([local]) }],
    ["that is not set", { kind: "ipip" }],
  ])("%s is not ours", (_title, device) => {
    expect([isOwnIpip(device), givenAddresses(device)]).toEqual([false, []]);
  });
});
