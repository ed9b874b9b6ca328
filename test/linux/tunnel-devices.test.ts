/** VXLAN devices, forwarding entries, checksum offload and the events about them, in private namespaces. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readChecksumOffload, setChecksumOffload } from "../../src/linux/checksum-offload.ts";
import { isKernelError } from "../../src/linux/kernel-error.ts";
import {
  attempt,
  closeNetlinkSocket,
  type NetlinkSocket,
  ownSockets,
  perform,
} from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, runInNetns } from "../../src/linux/netns.ts";
import {
  deleteForwardingEntry,
  listForwardingEntries,
  setForwardingEntry,
} from "../../src/linux/rtnetlink/forwarding-entry.ts";
import { createIpip } from "../../src/linux/rtnetlink/ipip.ts";
import { changeLink, deleteLink, findLink } from "../../src/linux/rtnetlink/link.ts";
import { listNeighbours, setNeighbour } from "../../src/linux/rtnetlink/neighbour.ts";
import { type NetworkEvent, watchNetwork } from "../../src/linux/rtnetlink/network-monitor.ts";
import { replaceRoute } from "../../src/linux/rtnetlink/route.ts";
import { changeVxlan, createVxlan, findVxlan } from "../../src/linux/rtnetlink/vxlan.ts";
import { address, prefix } from "../support/ip.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("tunnel");
const mac = Uint8Array.fromHex("660102030405");
const peerMac = Uint8Array.fromHex("66aabbccddee");
const FAMILIES = [
  { family: 4, local: address("192.168.5.1"), moved: address("192.168.5.9"), remote: address("192.168.5.2") },
  { family: 6, local: address("fd05::1"), moved: address("fd05::9"), remote: address("fd05::2") },
] as const;

describe.skipIf(!canMakeNetns)(`tunnel devices${canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)"}`, () => {
  let host: TestNetns;
  let netns: Netns;
  let socket: NetlinkSocket;
  let underlyingIndex: number;

  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    host = area.create("host");
    for (const command of [
      "link add eth0 type veth peer name other",
      "link set eth0 up",
      "link set other up",
      "addr add 192.168.5.1/24 dev eth0",
      "addr add fd05::1/64 dev eth0 nodad",
    ]) {
      runIn(host, ["ip", ...command.split(" ")]);
    }
    netns = requireNetns(host.path);
    socket = openNetlinkSocketIn(netns, "route");
    underlyingIndex = findLink(socket, "eth0")?.index ?? 0;
  });
  afterEach(() => {
    closeNetlinkSocket(socket);
    closeNetns(netns);
  });

  const create = (local = FAMILIES[0].local) => {
    const settings = { id: 4096, local, underlyingIndex, port: 4789 };
    perform(socket, [createVxlan({ name: "vx", mac, mtu: 1430, state: "up", ...settings })]);
    return { settings, index: findLink(socket, "vx")?.index ?? 0 };
  };

  for (const { family, local, moved, remote } of FAMILIES) {
    test(`a VXLAN device over IPv${family} is created and read; its address and MAC change while it is up`, () => {
      const { settings, index } = create(local);
      expect(findVxlan(socket, "vx")).toMatchObject({
        link: { index, mac, mtu: 1430, isUp: true, kind: "vxlan" },
        vxlan: { ...settings, learns: false },
      });
      perform(socket, [changeVxlan({ name: "vx" }, { local: moved }), changeLink({ name: "vx" }, { mac: peerMac })]);
      expect(findVxlan(socket, "vx")).toMatchObject({
        link: { index, mac: peerMac, isUp: true },
        vxlan: { ...settings, local: moved },
      });
      expect(findVxlan(socket, "eth0")?.vxlan).toBeUndefined();
      expect(findVxlan(socket, "none")).toBeUndefined();
    });

    test(`forwarding entries over IPv${family} are set, replaced, listed and deleted`, () => {
      const { index: linkIndex } = create(local);
      perform(socket, [setForwardingEntry({ linkIndex, mac: peerMac, remote: moved })]);
      perform(socket, [setForwardingEntry({ linkIndex, mac: peerMac, remote })]);
      expect(listForwardingEntries(socket, linkIndex)).toEqual([
        { linkIndex, mac: peerMac, remote, isPermanent: true },
      ]);
      expect(runIn(host, ["bridge", "fdb", "show", "dev", "vx"])).toContain("self permanent");
      perform(socket, [deleteForwardingEntry({ linkIndex, mac: peerMac, remote })]);
      expect(listForwardingEntries(socket, linkIndex)).toEqual([]);
      expect(isKernelError(attempt(socket, [deleteForwardingEntry({ linkIndex, mac, remote })])[0], "ENOENT")).toBe(
        true,
      );
    });
  }

  test("the neighbours of one link are listed alone", () => {
    const { index } = create();
    perform(socket, [
      setNeighbour({ linkIndex: index, address: address("10.9.1.7"), mac: peerMac }),
      setNeighbour({ linkIndex: underlyingIndex, address: address("192.168.5.3"), mac }),
    ]);
    const known = { linkIndex: index, address: address("10.9.1.7"), mac: peerMac, isPermanent: true };
    expect(listNeighbours(socket, index).filter(({ isPermanent }) => isPermanent)).toEqual([known]);
  });

  test("an IPIP device is created, or the kernel says that it has none", () => {
    const [refusal] = attempt(socket, [createIpip({ name: "tunl0", mtu: 1480, state: "up" })]);
    if (isKernelError(refusal, "EOPNOTSUPP")) expect(findLink(socket, "tunl0")).toBeUndefined();
    else expect(findLink(socket, "tunl0")?.kind).toBe("ipip");
  });

  test("transmit checksum offload is turned off and on", () => {
    create();
    runInNetns(netns, () => {
      expect(readChecksumOffload("vx")).toBe(true);
      setChecksumOffload("vx", "off");
      expect(readChecksumOffload("vx")).toBe(false);
      setChecksumOffload("vx", "on");
      expect(readChecksumOffload("vx")).toBe(true);
      expect(() => setChecksumOffload("none", "off")).toThrow('turn off the checksum offload of link "none"');
    });
  });

  test("events describe changes of links, addresses, routes, neighbours and forwarding entries", async () => {
    const stop = new AbortController();
    let vxlanIndex = -1;
    const hasNeighbours = (linkIndex: number) => linkIndex === vxlanIndex;
    const events = watchNetwork({ kernel: ownSockets, signal: stop.signal, hasNeighbours })[Symbol.asyncIterator]();
    const first = runInNetns(netns, () => ({ value: events.next() })).value;
    const seen: NetworkEvent[] = [];
    const reading = (async () => {
      for (let next = await first; !next.done; next = await events.next()) {
        if (next.value !== "lost") seen.push(...next.value);
      }
    })();
    const { index: linkIndex } = create();
    vxlanIndex = linkIndex;
    const [gateway, remote] = [address("10.9.1.7"), FAMILIES[0].remote];
    runIn(host, ["ip", "neigh", "add", "192.168.5.3", "lladdr", "02:00:00:00:00:01", "dev", "eth0"]);
    runIn(host, ["ip", "addr", "add", "10.9.0.1/32", "dev", "vx"]);
    // The kernel gives every link such an address, and reports it again a second later.
    runIn(host, ["ip", "addr", "add", "fe80::77/64", "dev", "vx", "nodad"]);
    perform(socket, [
      setForwardingEntry({ linkIndex, mac: peerMac, remote }),
      setNeighbour({ linkIndex, address: gateway, mac: peerMac }),
      replaceRoute({ destination: prefix("10.9.1.0/26"), gateway, linkIndex, isOnLink: true }),
      deleteForwardingEntry({ linkIndex, mac: peerMac, remote }),
      deleteLink({ name: "vx" }),
    ]);
    while (!seen.some((event) => event.kind === "link" && event.change === "delete")) await Bun.sleep(5);
    stop.abort();
    await reading;
    const entry = expect.objectContaining({ linkIndex, mac: peerMac, remote });
    for (const expected of [
      { kind: "link", change: "put", link: expect.objectContaining({ name: "vx" }) },
      { kind: "address", change: "put", address: expect.objectContaining({ linkIndex, address: address("10.9.0.1") }) },
      { kind: "forwarding", change: "put", entry },
      { kind: "neighbour", change: "put", neighbour: { linkIndex, address: gateway, mac: peerMac, isPermanent: true } },
      { kind: "route", change: "put", route: expect.objectContaining({ destination: prefix("10.9.1.0/26"), gateway }) },
      { kind: "forwarding", change: "delete", entry },
      { kind: "link", change: "delete", linkIndex },
    ]) {
      expect(seen).toContainEqual(expected as NetworkEvent);
    }
    expect(seen.filter((event) => event.kind === "address" && event.address.linkIndex === linkIndex)).toHaveLength(2);
    expect(seen.some((event) => event.kind === "neighbour" && event.neighbour.linkIndex === underlyingIndex)).toBe(
      false,
    );
  });
});
