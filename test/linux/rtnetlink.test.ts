import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { isKernelError, KernelError } from "../../src/linux/kernel-error.ts";
import { echoed } from "../../src/linux/netlink/request.ts";
import {
  attempt,
  closeNetlinkSocket,
  type NetlinkSocket,
  openNetlinkSocket,
  perform,
} from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, openNetns, runInNetns } from "../../src/linux/netns.ts";
import { addAddress, deleteAddress, ensureAddress, listAddresses } from "../../src/linux/rtnetlink/address.ts";
import {
  changeLink,
  createIfb,
  deleteLink,
  findLink,
  findLinkByIndex,
  type Link,
  listLinks,
  readLink,
} from "../../src/linux/rtnetlink/link.ts";
import { deleteNeighbour, listNeighbours, setNeighbour } from "../../src/linux/rtnetlink/neighbour.ts";
import {
  addRoute,
  deleteRoute,
  listRoutes,
  MAIN_TABLE,
  ROUTE_PROTOCOL,
  replaceRoute,
} from "../../src/linux/rtnetlink/route.ts";
import { createVeth } from "../../src/linux/rtnetlink/veth.ts";
import { address, prefix } from "../support/ip.ts";
import { isKernelAtLeast } from "../support/kernel-version.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("rtnl");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";
const mac = Uint8Array.fromHex("eeeeeeeeeeee");
const gateway = address("169.254.1.1");
const podAddress = address("10.65.0.7");
const podAddress6 = address("fd00::7");

describe.skipIf(!canMakeNetns)(`rtnetlink in private namespaces${why}`, () => {
  let host: TestNetns;
  let pod: TestNetns;
  let hostSocket: NetlinkSocket;
  let podSocket: NetlinkSocket;
  let podNetns: Netns;

  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  beforeEach(() => {
    host = area.create("host");
    pod = area.create("pod");
    podNetns = opened(pod);
    hostSocket = openNetlinkSocketIn(opened(host), "route");
    podSocket = openNetlinkSocketIn(podNetns, "route");
  });

  afterEach(() => {
    closeNetlinkSocket(hostSocket);
    closeNetlinkSocket(podSocket);
    closeNetns(podNetns);
  });

  function makePair(more: { readonly queues?: number; readonly mtu?: number } = {}): { host: Link; pod: Link } {
    const ends = {
      host: { name: "vt0", mac, state: "up" },
      peer: { name: "eth0", netnsFd: podNetns.fd },
    } as const;
    perform(hostSocket, [createVeth({ ...ends, ...more })]);
    return { host: present(findLink(hostSocket, "vt0")), pod: present(findLink(podSocket, "eth0")) };
  }

  test("a veth pair is created across two namespaces with its queues, MTU and MAC", () => {
    const ends = makePair({ queues: 3, mtu: 1410 });

    expect(ends.host).toMatchObject({ kind: "veth", isUp: true, mtu: 1410, peerIndex: ends.pod.index });
    expect(ends.host.mac).toEqual(mac);
    expect(ends.pod).toMatchObject({ kind: "veth", isUp: false, mtu: 1410, peerIndex: ends.host.index });
    for (const end of [ends.host, ends.pod]) expect([end.transmitQueues, end.receiveQueues]).toEqual([3, 3]);
    const details = JSON.parse(runIn(pod, ["ip", "-d", "-j", "link", "show", "eth0"]))[0];
    expect(details).toMatchObject({ num_tx_queues: 3, num_rx_queues: 3, mtu: 1410 });
    expect(findLinkByIndex(podSocket, ends.pod.index)).toEqual(ends.pod);
  });

  test("a link is changed, and deleting one end removes both", () => {
    const ends = makePair();
    const other = Uint8Array.fromHex("020000000009");
    perform(podSocket, [changeLink(ends.pod, { mac: other, mtu: 1300, alias: "net/id/eth0", state: "up" })]);

    expect(findLink(podSocket, "eth0")).toMatchObject({ mac: other, mtu: 1300, alias: "net/id/eth0", isUp: true });
    perform(hostSocket, [deleteLink(ends.host)]);
    expect(findLink(podSocket, "eth0")).toBeUndefined();
    expect(findLinkByIndex(hostSocket, ends.host.index)).toBeUndefined();
  });

  test("an IFB is created up, with its alias", () => {
    perform(hostSocket, [
      createIfb({ name: "vtifb", mtu: 1400, state: "up" }),
      changeLink({ name: "vtifb" }, { alias: "net/id/eth0" }),
    ]);
    expect(findLink(hostSocket, "vtifb")).toMatchObject({ kind: "ifb", mtu: 1400, isUp: true, alias: "net/id/eth0" });
    perform(hostSocket, [deleteLink({ name: "vtifb" })]);
    expect(findLink(hostSocket, "vtifb")).toBeUndefined();
  });

  test("one system call sets addresses, neighbour and routes of a container", () => {
    const { pod: eth0 } = makePair();
    const linkIndex = eth0.index;
    perform(podSocket, [
      changeLink(eth0, { state: "up" }),
      addAddress({ linkIndex, address: podAddress, length: 32 }),
      addAddress({ linkIndex, address: podAddress6, length: 128 }),
      setNeighbour({ linkIndex, address: gateway, mac }),
      addRoute({ destination: prefix("169.254.1.1/32"), linkIndex, scope: "link" }),
      addRoute({ destination: prefix("0.0.0.0/0"), gateway, linkIndex, mtu: 1300, advertisedSegment: 1200 }),
    ]);

    const addresses = listAddresses(podSocket).filter((each) => each.linkIndex === linkIndex);
    expect(addresses).toContainEqual({
      linkIndex,
      address: podAddress,
      length: 32,
      scope: "universe",
      isTentative: false,
    });
    expect(addresses).toContainEqual({
      linkIndex,
      address: podAddress6,
      length: 128,
      scope: "universe",
      isTentative: false,
    });
    expect(listNeighbours(podSocket)).toContainEqual({ linkIndex, address: gateway, mac, isPermanent: true });
    const main = listRoutes(podSocket, 4).filter((route) => route.table === MAIN_TABLE);
    const shared = {
      table: MAIN_TABLE,
      protocol: ROUTE_PROTOCOL.boot,
      kind: "unicast",
      linkIndex,
    } as const;
    expect(main).toContainEqual({ ...shared, destination: prefix("169.254.1.1/32"), scope: "link", isOnLink: false });
    expect(main).toContainEqual({
      ...shared,
      destination: prefix("0.0.0.0/0"),
      gateway,
      scope: "universe",
      isOnLink: false,
      mtu: 1300,
      advertisedSegment: 1200,
    });
    expect(runIn(pod, ["ip", "route"])).toContain("default via 169.254.1.1 dev eth0 mtu 1300 advmss 1200");
  });

  test("routes are added once, replaced and deleted, in any table", () => {
    const { host: link } = makePair();
    const route = { destination: prefix("10.65.0.7/32") };
    const far = { ...route, table: 5000, linkIndex: link.index, scope: "link", protocol: 80 } as const;
    perform(hostSocket, [addRoute(far)]);

    expect(isKernelError(attempt(hostSocket, [addRoute(far)])[0], "EEXIST")).toBe(true);
    perform(hostSocket, [replaceRoute({ ...route, table: 5000, kind: "blackhole", protocol: 80 })]);
    const [found, ...more] = listRoutes(hostSocket).filter((each) => each.table === 5000);
    expect(found).toMatchObject({ kind: "blackhole", protocol: 80, ...route });
    expect(more).toEqual([]);
    perform(hostSocket, [deleteRoute({ ...route, table: 5000 })]);
    expect(isKernelError(attempt(hostSocket, [deleteRoute({ ...route, table: 5000 })])[0], "ESRCH")).toBe(true);
  });

  test("an IPv6 route uses an on-link gateway without a route to it", () => {
    const { host: link } = makePair();
    const nextHop = address("fd99::1");
    const route = { destination: prefix("fd00::7/128") };
    perform(hostSocket, [addRoute({ ...route, gateway: nextHop, linkIndex: link.index, isOnLink: true })]);

    const found = listRoutes(hostSocket, 6).find((each) => each.gateway !== undefined);
    expect(found).toMatchObject({ ...route, gateway: nextHop, isOnLink: true });
  });

  test("addresses and neighbours are removed", () => {
    const { host: link } = makePair();
    const own = { linkIndex: link.index, address: podAddress, length: 32 };
    const neighbour = { linkIndex: link.index, address: gateway };
    perform(hostSocket, [addAddress(own), setNeighbour({ ...neighbour, mac })]);

    const [again, ensured] = attempt(hostSocket, [addAddress(own), ensureAddress(own)]);
    expect(isKernelError(again, "EEXIST")).toBe(true);
    expect(ensured).toBeUndefined();
    perform(hostSocket, [deleteNeighbour(neighbour), deleteAddress(own)]);
    expect(listAddresses(hostSocket, 4).filter((each) => each.linkIndex === link.index)).toEqual([]);
    expect(listNeighbours(hostSocket).filter((each) => each.isPermanent && each.address.family === 4)).toEqual([]);
  });

  test("the kernel reports a new pair if requested, with the index of the other end, or before 6.2 nothing", () => {
    const pair = { host: { name: "vt0", state: "down" }, peer: { name: "eth0", netnsFd: podNetns.fd } } as const;
    const told: (Link | undefined)[] = [];
    attempt(hostSocket, [echoed(createVeth(pair)), changeLink(pair.host, { mtu: 1400 })], (message) => {
      told.push(readLink(message));
    });

    if (!isKernelAtLeast("6.2")) return expect(told).toEqual([]);
    const [born] = told;
    expect(told).toHaveLength(1);
    expect(born).toMatchObject({ name: "vt0", mtu: 1500, kind: "veth" });
    expect(born?.index).toBe(findLink(hostSocket, "vt0")?.index);
    expect(born?.peerIndex).toBe(findLink(podSocket, "eth0")?.index);
  });

  test("a refusal contains the action, the name of the error and the kernel's text; the following requests are still tried", () => {
    const { host: link } = makePair();
    const outcomes = attempt(hostSocket, [
      addRoute({ destination: prefix("0.0.0.0/0"), gateway: address("203.0.113.1"), linkIndex: link.index }),
      changeLink(link, { mtu: 1200 }),
      deleteLink({ name: "nowhere" }),
    ]);

    expect(outcomes[0]).toBeInstanceOf(KernelError);
    expect(outcomes[0]?.kind).toBe("kernel-refused");
    expect(outcomes[0]?.kernelText).toBe("Nexthop has invalid gateway");
    expect(outcomes[0]?.message).toBe(
      "Cannot add route 0.0.0.0/0: ENETUNREACH (Network is unreachable): Nexthop has invalid gateway",
    );
    expect(outcomes[1]).toBeUndefined();
    expect(findLink(hostSocket, "vt0")?.mtu).toBe(1200);
    expect(isKernelError(outcomes[2], "ENODEV")).toBe(true);
    const again = { host: { name: "vt0", state: "up" }, peer: { name: "eth1", netnsFd: podNetns.fd } } as const;
    expect(() => perform(hostSocket, [createVeth(again)])).toThrow(KernelError);
  });

  test("a thousand links are listed, each once", () => {
    const ifbs = Array.from({ length: 1000 }, (_, index) => `vtifb${index}`);
    perform(
      hostSocket,
      ifbs.map((name) => createIfb({ name, mtu: 1500, state: "down" })),
    );
    const names = listLinks(hostSocket).map((link) => link.name);
    expect(names.filter((name) => name.startsWith("vtifb")).sort()).toEqual(ifbs.sort());
  });

  test("a socket opened inside stays inside", () => {
    makePair();
    const outside = runInNetns(opened(host), () => openNetlinkSocket("route"));
    expect(findLink(outside, "vt0")).toBeDefined();
    expect(findLink(outside, "eth0")).toBeUndefined();
    closeNetlinkSocket(outside);
  });
});

function opened(netns: TestNetns): Netns {
  return present(openNetns(netns.path));
}

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("expected a value");
  return value;
}
