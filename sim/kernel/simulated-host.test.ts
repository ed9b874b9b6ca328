import { describe, expect, test } from "bun:test";
import { isKernelError } from "../../src/linux/kernel-error.ts";
import { echoed } from "../../src/linux/netlink/request.ts";
import { drain, joinGroups } from "../../src/linux/netlink-group.ts";
import { attempt, perform } from "../../src/linux/netlink-socket.ts";
import { tryCommit } from "../../src/linux/nftables/commit.ts";
import { listTables } from "../../src/linux/nftables/read.ts";
import { ensureAddress, listAddresses } from "../../src/linux/rtnetlink/address.ts";
import { createIpip } from "../../src/linux/rtnetlink/ipip.ts";
import { changeLink, deleteLink, findLink, type Link, listLinks, readLink } from "../../src/linux/rtnetlink/link.ts";
import { listNeighbours, setNeighbour } from "../../src/linux/rtnetlink/neighbour.ts";
import { addRoute, listHostRoutes, listRoutes } from "../../src/linux/rtnetlink/route.ts";
import { routeTowards } from "../../src/linux/rtnetlink/route-lookup.ts";
import { createVeth } from "../../src/linux/rtnetlink/veth.ts";
import { address, prefix } from "../../test/support/ip.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { SimulatedHost } from "./simulated-host.ts";

const podMac = Uint8Array.fromHex("0a0102030405");
const POD = "/run/netns/pod";

function site() {
  const host = new SimulatedHost({ name: "one", random: new Random(1) });
  host.addHardware({ name: "eth0", addresses: [{ address: address("192.168.0.1"), length: 24 }] });
  host.makeNamespace(POD);
  const kernel = host.directKernel();
  const netns = kernel.openNetns(POD) ?? expect.unreachable();
  return { host, kernel, netns, outside: kernel.openSocket("route"), inside: kernel.openSocketIn(netns, "route") };
}

/** Faults disturb programs only. */
function kernelOfProgram(host: SimulatedHost) {
  return host.kernelFor(new SimulatedProcess("program", new Scheduler(new Random(2)), new Random(3)));
}

describe("SimulatedHost", () => {
  test("wires a pod as the plugin does it, and answers as Linux does", () => {
    const { host, netns, outside, inside } = site();
    let born: Link | undefined;
    const create = createVeth({
      host: { name: "veth1", mac: Uint8Array.fromHex("eeeeeeeeeeee"), state: "down" },
      peer: { name: "eth0", mac: podMac, netnsFd: netns.fd },
      mtu: 1400,
      queues: 1,
    });
    const mark = changeLink({ name: "veth1" }, { alias: "mine", ipv4: { forwarding: 1, proxyArp: 1 } });
    attempt(outside, [echoed(create), mark], (message) => {
      born ??= readLink(message);
    });
    const link = born ?? expect.unreachable();
    const { peerIndex = 0 } = link;
    const pod = address("10.0.0.7");
    perform(outside, [
      changeLink(link, { state: "up" }),
      setNeighbour({ linkIndex: link.index, address: pod, mac: podMac }),
      addRoute({ destination: prefix("10.0.0.7/32"), linkIndex: link.index, scope: "link" }),
    ]);
    perform(inside, [
      ensureAddress({ linkIndex: peerIndex, address: pod, length: 32 }),
      changeLink({ name: "eth0", index: peerIndex }, { state: "up" }),
      addRoute({ destination: prefix("169.254.1.1/32"), linkIndex: peerIndex, scope: "link" }),
      addRoute({ destination: prefix("0.0.0.0/0"), gateway: address("169.254.1.1"), linkIndex: peerIndex }),
    ]);

    expect(findLink(outside, "veth1")).toMatchObject({ alias: "mine", isUp: true, mtu: 1400, peerIndex, kind: "veth" });
    expect(host.root.sysctls.get("net/ipv4/conf/veth1/proxy_arp")).toBe("1");
    expect(listNeighbours(outside)).toEqual([{ linkIndex: link.index, address: pod, mac: podMac, isPermanent: true }]);
    expect(listHostRoutes(outside).map(({ destination }) => destination)).toEqual([prefix("10.0.0.7/32")]);
    expect(routeTowards(outside, pod)).toMatchObject({ linkIndex: link.index, source: address("192.168.0.1") });
    expect(routeTowards(inside, address("1.1.1.1"))).toMatchObject({ gateway: address("169.254.1.1"), source: pod });
    expect(listAddresses(inside, 4).map((each) => each.address)).toEqual([pod]);
    expect(attempt(outside, [create])[0]?.message).toContain("EEXIST");

    perform(outside, [deleteLink(link)]);
    expect(listLinks(inside).map(({ name }) => name)).toEqual(["lo"]);
    expect([listHostRoutes(outside), listRoutes(inside), listNeighbours(outside)]).toEqual([[], [], []]);
    expect(attempt(outside, [deleteLink(link)])[0]?.message).toContain("ENODEV");
  });

  test("the links of a namespace go with it, after nobody has it open any more", () => {
    const { host, kernel, netns, outside } = site();
    perform(outside, [createVeth({ host: { name: "veth1", state: "up" }, peer: { name: "eth0", netnsFd: netns.fd } })]);
    host.removeNamespace(POD);
    host.settle(100);
    expect([kernel.openNetns(POD), findLink(outside, "veth1")?.name]).toEqual([undefined, "veth1"]);
    kernel.closeNetns(netns);
    host.settle(100);
    expect(findLink(outside, "veth1")).toBeUndefined();
  });

  test("loading IPIP makes the device that was to be created", () => {
    const { outside } = site();
    const [refusal] = attempt(outside, [createIpip({ name: "tunl0", mtu: 1480, state: "up" })]);
    expect(refusal?.message).toContain("EEXIST");
    expect(findLink(outside, "tunl0")).toMatchObject({ kind: "ipip", isUp: false });
  });

  test("events that are lost are reported as lost", () => {
    const { host, outside } = site();
    const listener = kernelOfProgram(host).openSocket("route");
    joinGroups(listener, [7], 4096);
    const route = addRoute({ destination: prefix("10.1.0.0/16"), kind: "blackhole" });
    host.faults.lostEvents = 1;
    perform(outside, [route]);
    expect(drain(listener, () => {})).toBe("lost");
    host.faults.lostEvents = 0;
    perform(outside, [addRoute({ destination: prefix("10.2.0.0/16"), kind: "blackhole" })]);
    let heard = 0;
    const count = () => {
      heard += 1;
    };
    expect([drain(listener, count), heard]).toEqual(["complete", 1]);
  });

  test("requests can be refused for no reason of theirs, and tables change while they are read", () => {
    const { host, outside } = site();
    const kernel = kernelOfProgram(host);
    const [route, netfilter] = [kernel.openSocket("route"), kernel.openSocket("netfilter")];
    const before = host.root.routes.length;
    host.faults.refusals = 1;
    const [refusal] = attempt(route, [addRoute({ destination: prefix("10.1.0.0/16"), kind: "blackhole" })]);
    expect([isKernelError(refusal, "ENOBUFS", "ENOMEM"), host.root.routes.length]).toEqual([true, before]);
    const table = { family: "ip", name: "mine" } as const;
    const [refusedBatch] = tryCommit(netfilter, [{ kind: "add-table", table }]);
    expect([isKernelError(refusedBatch?.error, "ENOBUFS", "ENOMEM"), host.root.nftables.tables.size]).toEqual([
      true,
      0,
    ]);
    host.faults.refusals = 0;
    host.faults.interruptedDumps = 1;
    expect(() => listLinks(route)).toThrow("it kept changing");
    expect(() => listTables(netfilter)).toThrow("it kept changing");
    expect(listLinks(outside)).toHaveLength(2);
    host.faults.interruptedDumps = 0.5;
    expect(listLinks(route).map(({ name }) => name)).toEqual(["lo", "eth0"]);
  });

  test("a process is woken by what arrives, and hears nothing after its death", async () => {
    const { host, outside } = site();
    const scheduler = new Scheduler(new Random(2));
    const process = new SimulatedProcess("agent", scheduler, new Random(3));
    const socket = host.kernelFor(process).openSocket("route");
    joinGroups(socket, [7], 65_536);
    const heard: number[] = [];
    const listen = async () => {
      for await (const arrived of socket.channel.arrivals(process.signal)) {
        if (arrived !== "lost") heard.push(scheduler.now);
      }
    };
    void listen();
    await scheduler.runUntil(10);
    perform(outside, [addRoute({ destination: prefix("10.1.0.0/16"), kind: "blackhole" })]);
    await scheduler.runUntil(20);
    expect(heard.length).toBe(1);
    expect(heard[0]).toBeGreaterThan(10);
    process.kill();
    perform(outside, [addRoute({ destination: prefix("10.2.0.0/16"), kind: "blackhole" })]);
    await scheduler.runUntil(30);
    expect(heard.length).toBe(1);
    expect(() => perform(socket, [addRoute({ destination: prefix("10.3.0.0/16"), kind: "blackhole" })])).toThrow();
    expect(host.root.routes.some(({ destination }) => destination.network.value === 0x0a03_0000n)).toBe(false);
  });
});
