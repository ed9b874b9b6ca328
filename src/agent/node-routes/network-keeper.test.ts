/** The order of guard and devices, with a kernel that has IPIP: test/routing/network-keeper.test.ts has the real kernel. */
import { describe, expect, test } from "bun:test";
import { address } from "../../../test/support/ip.ts";
import { nodeFact, poolFact, putFact } from "../../../test/support/routing-facts.ts";
import { identity } from "../../identity.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { RoutePlanner } from "../../routing/planner.ts";
import type { NetworkKernel } from "./kernel-network.ts";
import { NetworkKeeper } from "./network-keeper.ts";

const link = (name: string, more: Partial<Link> = {}): Link => ({
  ...{ index: 2, name, isUp: true, mtu: 1500, mac: new Uint8Array(6), transmitQueues: 1, receiveQueues: 1 },
  ...more,
});
const TUNL0 = link("tunl0", { index: 7, kind: "ipip", alias: identity.nodeAgent, mtu: 1480 });

/** A node with the planner and the keeper of its routes. `steps`: what guard and kernel are given, in order. */
function openNode(devices: readonly Link[] = []) {
  const present = new Map(devices.map((device) => [device.name, device]));
  const steps: string[] = [];
  const kernel: NetworkKernel = {
    addresses: () => ({
      links: [link("eth0"), ...present.values()],
      addresses: [{ linkIndex: 2, address: address("192.168.5.1"), length: 24, scope: "universe", isTentative: false }],
    }),
    device(name) {
      const found = present.get(name);
      if (found === undefined) return undefined;
      return found.kind === "vxlan"
        ? {
            link: found,
            vxlan: { id: 4096, port: 4789, local: address("192.168.5.1"), underlyingIndex: 2, learns: false },
          }
        : { link: found };
    },
    entries: (linkIndex) => ({ linkIndex, neighbours: [], forwarding: [] }),
    routes: () => [],
    attempt(requests) {
      for (const { action } of requests) {
        const [, verb, name = ""] = /^(create|delete) link "(.*)"$/.exec(action) ?? [];
        if (verb !== undefined) steps.push(action);
        if (verb === "create")
          present.set(name, name === "tunl0" ? TUNL0 : link(name, { index: 8, kind: "vxlan", mtu: 1450 }));
        if (verb === "delete") present.delete(name);
      }
      return requests.map(() => undefined);
    },
    turnOffChecksumOffload: () => {},
    close: () => {},
  };
  const guard = {
    apply: ({ tunnels }: { readonly tunnels: ReadonlySet<string> }) =>
      void steps.push(`guard ${[...tunnels.keys()].join()}`),
    follow: ({ tunnels }: { readonly tunnels: ReadonlySet<string> }) =>
      void steps.push(`follow ${[...tunnels.keys()].join()}`),
  };
  const keeper = new NetworkKeeper({
    ...{ kernel, guard, poolsOf: () => [], needsOwnChecksums: false },
    ...{ report: () => {}, elapsed: () => 0 },
  });
  const planner = new RoutePlanner("a", { isEnabled: true, isBgpEnabled: false });
  const node = { ipv4: "192.168.5.1/24", vxlan4: "10.60.0.0", ipip: "10.60.0.1" };
  const update = (changes: Parameters<RoutePlanner["update"]>[0]) => {
    steps.length = 0;
    const change = planner.update(changes);
    keeper.update(planner.plan, change);
    return [...steps];
  };
  const use = (mode: Parameters<typeof poolFact>[2]) =>
    update({ nodes: [putFact("a", nodeFact("a", node))], pools: [putFact("p", poolFact("p", "10.60.0.0/16", mode))] });
  return { use, update };
}

describe("the guard of tunnels", () => {
  test("is there before a device, and goes after it", () => {
    const { use } = openNode();
    expect(use("vxlan")).toEqual(["guard vxlan4", `create link "${identity.vxlanDevice}"`]);
    expect(use("none")).toEqual(["guard vxlan4", `delete link "${identity.vxlanDevice}"`, "guard "]);
  });

  test("of VXLAN goes after its device if another tunnel takes its place", () => {
    const { use } = openNode();
    use("vxlan");
    expect(use("ipip")).toEqual([
      ...["guard vxlan4,ipip4", 'create link "tunl0"', `delete link "${identity.vxlanDevice}"`],
      "guard ipip4",
    ]);
  });

  test("of IPIP stays as long as the device that we have set up, and knows nodes that join", () => {
    const { use, update } = openNode();
    use("ipip");
    expect(use("none")).toEqual(["guard ipip4"]);
    expect(update({ nodes: [putFact("b", nodeFact("b", { ipv4: "192.168.5.2/24" }))] })).toEqual(["follow ipip4"]);
  });

  test.each([
    ["that we have set up, of a former agent", TUNL0, ["guard ipip4"]],
    ["that is down", { ...TUNL0, isUp: false }, ["guard "]],
    ["of another program", { ...TUNL0, alias: "" }, ["guard "]],
  ])("of IPIP, with a device %s", (_title, device, steps) => {
    expect(openNode([device]).use("none")).toEqual(steps);
  });
});
