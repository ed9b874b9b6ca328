/** The kernel that runs the tests may have no IPIP; the model of it has. */
import { describe, expect, test } from "bun:test";
import { type NetworkKernel, openKernelNetwork } from "../../src/agent/node-routes/kernel-network.ts";
import { NetworkKeeper } from "../../src/agent/node-routes/network-keeper.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { errnoOf } from "../../src/linux/errno.ts";
import { KernelError } from "../../src/linux/kernel-error.ts";
import type { NetlinkRequest } from "../../src/linux/netlink/request.ts";
import { perform } from "../../src/linux/netlink-socket.ts";
import { addAddress } from "../../src/linux/rtnetlink/address.ts";
import { RoutePlanner } from "../../src/routing/planner.ts";
import { address } from "../../test/support/ip.ts";
import { nodeFact, type PoolModeName, poolFact, putFact } from "../../test/support/routing-facts.ts";
import { SimulatedHost } from "../kernel/simulated-host.ts";
import { Random } from "../schedule/random.ts";

/** A host with the routing of an agent, which can be started again. */
function openHost() {
  const host = new SimulatedHost({ name: "a", random: new Random(1) });
  host.addHardware({ name: "eth0", addresses: [{ address: address("192.168.5.1"), length: 24 }] });
  const socket = host.directKernel().openSocket("route");
  const real = openKernelNetwork({ openSocket: () => socket });
  const refused = { actions: /^nothing/ };
  const attemptOne = (request: NetlinkRequest) =>
    refused.actions.test(request.action)
      ? [new KernelError(request.action, errnoOf("ENOMEM"))]
      : real.attempt([request]);
  const kernel: NetworkKernel = { ...real, attempt: (requests) => requests.flatMap(attemptOne) };
  const guard = { apply: () => {}, follow: () => {} };
  const startAgent = () => {
    const keeper = new NetworkKeeper({
      ...{ kernel, guard, poolsOf: () => [], needsOwnChecksums: false },
      ...{ report: () => {}, elapsed: () => 0 },
    });
    const planner = new RoutePlanner("a", { isEnabled: true, isBgpEnabled: false });
    /** With this tunnel address in the record of the node. */
    return (tunnelAddress: string, mode: PoolModeName = "ipip") => {
      const node = nodeFact("a", { ipv4: "192.168.5.1/24", ipip: tunnelAddress });
      const pools = [putFact("p", poolFact("p", "10.60.0.0/16", mode))];
      const change = planner.update({ nodes: [putFact("a", node)], pools });
      return keeper.update(planner.plan, change);
    };
  };
  const linkIndex = () => kernel.device("tunl0")?.link.index ?? 0;
  const addresses = () => {
    const ofDevice = kernel.addresses().addresses.filter((each) => each.linkIndex === linkIndex());
    return ofDevice.map((each) => formatAddress(each.address));
  };
  const addForeign = (text: string) =>
    perform(socket, [addAddress({ linkIndex: linkIndex(), address: address(text), length: 32 })]);
  return { refused, startAgent, addresses, addForeign };
}

describe("the address of tunl0", () => {
  test("that the node had before goes when it gets another one, and addresses of other programs stay", () => {
    const { startAgent, addresses, addForeign } = openHost();
    const record = startAgent();
    record("10.60.0.1");
    addForeign("192.0.2.7");
    record("10.60.9.1");
    expect(addresses().toSorted()).toEqual(["10.60.9.1", "192.0.2.7"]);
  });

  test("goes when no pool needs the tunnel any more, also if another agent has set it", () => {
    const { startAgent, addresses, addForeign } = openHost();
    startAgent()("10.60.0.1");
    addForeign("192.0.2.7");
    expect(startAgent()("10.60.0.1", "none")).toBe("settled");
    expect(addresses()).toEqual(["192.0.2.7"]);
  });

  test.each([
    ["of another address", "10.60.9.1", "ipip", ["10.60.9.1"]],
    ["of none", "10.60.0.1", "none", []],
  ] as const)("goes later if the kernel refuses it at first, in favour %s", (_title, tunnelAddress, mode, expected) => {
    const { refused, startAgent, addresses } = openHost();
    startAgent()("10.60.0.1");
    const record = startAgent();
    refused.actions = /^delete address/;
    expect(record(tunnelAddress, mode)).toBe("unsettled");
    expect(addresses()).toContain("10.60.0.1");
    refused.actions = /^nothing/;
    startAgent()(tunnelAddress, mode);
    expect(addresses()).toEqual([...expected]);
  });
});
