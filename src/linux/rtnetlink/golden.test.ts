/** The requests byte for byte as iproute2 6.1 sends them: captured with `strace -e write=all`, sequence number cleared. */
import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ip.ts";
import { encodeRequests, type NetlinkRequest } from "../netlink/request.ts";
import { addAddress } from "./address.ts";
import { deleteForwardingEntry, setForwardingEntry } from "./forwarding-entry.ts";
import { createIpip } from "./ipip.ts";
import { changeLink, deleteLink } from "./link.ts";
import { setNeighbour } from "./neighbour.ts";
import { addRoute, deleteRoute, ROUTE_PROTOCOL, replaceRoute } from "./route.ts";
import { createVeth } from "./veth.ts";
import { changeVxlan, createVxlan } from "./vxlan.ts";

const link = { index: 2, name: "vt0" };
const hostMac = Uint8Array.fromHex("eeeeeeeeeeee");
const peerMac = Uint8Array.fromHex("66aabbccddee");
const gateway = address("169.254.1.1");
const block = { destination: prefix("10.9.0.0/26") };

const GOLDEN: readonly (readonly [command: string, request: NetlinkRequest, bytes: string])[] = [
  [
    "ip link add vt0 mtu 1400 numtxqueues 4 numrxqueues 4 address ee:ee:ee:ee:ee:ee type veth peer name eth0 mtu 1400 numtxqueues 4 numrxqueues 4 netns (fd 4)",
    createVeth({
      host: { name: "vt0", mac: hostMac, state: "down" },
      peer: { name: "eth0", netnsFd: 4 },
      mtu: 1400,
      queues: 4,
    }),
    "9c00000010000506000000000000000000000000000000000000000000000000080004007805000008001f000400000008002000040000000a000100eeeeeeeeeeee00000800030076743000500012000800010076657468440002004000010000000000000000000000000000000000080004007805000008001f0004000000080020000400000008001c0004000000090003006574683000000000",
  ],
  [
    "ip link set vt0 up",
    changeLink(link, { state: "up" }),
    "2000000010000500000000000000000000000000020000000100000001000000",
  ],
  [
    "ip link set vt0 alias hello",
    changeLink(link, { alias: "hello" }),
    "2c000000100005000000000000000000000000000200000000000000000000000900140068656c6c6f000000",
  ],
  [
    "ip link set vt0 address 02:00:00:00:00:01",
    changeLink(link, { mac: Uint8Array.fromHex("020000000001") }),
    "2c000000100005000000000000000000000000000200000000000000000000000a0001000200000000010000",
  ],
  [
    "ip link set vt0 mtu 1300",
    changeLink(link, { mtu: 1300 }),
    "28000000100005000000000000000000000000000200000000000000000000000800040014050000",
  ],
  ["ip link del vt0", deleteLink(link), "2000000011000500000000000000000000000000020000000000000000000000"],
  [
    "ip addr add 10.1.2.3/32 dev vt0",
    addAddress({ linkIndex: 2, address: address("10.1.2.3"), length: 32 }),
    "280000001400050600000000000000000220000002000000080002000a010203080001000a010203",
  ],
  [
    "ip -6 addr add fd00::1/128 dev vt0 nodad",
    addAddress({ linkIndex: 2, address: address("fd00::1"), length: 128 }),
    "400000001400050600000000000000000a8002000200000014000200fd00000000000000000000000000000114000100fd000000000000000000000000000001",
  ],
  [
    "ip route add 169.254.1.1 dev vt0 scope link",
    addRoute({ destination: prefix("169.254.1.1/32"), linkIndex: 2, scope: "link" }),
    "2c00000018000506000000000000000002200000fe03fd010000000008000100a9fe01010800040002000000",
  ],
  [
    "ip route replace default via 169.254.1.1 dev vt0 onlink mtu 1300 advmss 1200",
    replaceRoute({
      destination: prefix("0.0.0.0/0"),
      gateway,
      linkIndex: 2,
      isOnLink: true,
      mtu: 1300,
      advertisedSegment: 1200,
    }),
    "4000000018000505000000000000000002000000fe0300010400000008000500a9fe0101080004000200000014000800080002001405000008000800b0040000",
  ],
  [
    "ip -6 route add fd00::2/128 dev vt0 metric 50 table 200 proto 80",
    addRoute({
      destination: prefix("fd00::2/128"),
      linkIndex: 2,
      priority: 50,
      table: 200,
      protocol: 80,
    }),
    "400000001800050600000000000000000a800000c85000010000000014000100fd00000000000000000000000000000208000600320000000800040002000000",
  ],
  [
    "ip route add blackhole 10.9.0.0/26 proto 80",
    addRoute({ ...block, kind: "blackhole", protocol: 80 }),
    "24000000180005060000000000000000021a0000fe50000600000000080001000a090000",
  ],
  [
    "ip route del 10.9.0.0/26",
    deleteRoute(block),
    "24000000190005000000000000000000021a0000fe00ff0000000000080001000a090000",
  ],
  [
    "ip neigh replace 169.254.1.1 lladdr ee:ee:ee:ee:ee:ee nud permanent dev vt0",
    setNeighbour({ linkIndex: 2, address: gateway, mac: hostMac }),
    "300000001c000505000000000000000002000000020000008000000008000100a9fe01010a000200eeeeeeeeeeee0000",
  ],
  [
    "ip link add vx4 address 66:01:02:03:04:05 mtu 1450 type vxlan id 4096 local 192.168.5.1 dev eth0 dstport 4789 nolearning",
    createVxlan({
      ...{ name: "vx4", mac: Uint8Array.fromHex("660102030405"), mtu: 1450, state: "down" },
      ...{ id: 4096, local: address("192.168.5.1"), underlyingIndex: 3, port: 4789 },
    }),
    "78000000100005060000000000000000000000000000000000000000000000000a000100660102030405000008000400aa05000008000300767834003c0012000900010076786c616e0000002c0002000800030003000000080001000010000008000400c0a80501050007000000000006000f0012b50000",
  ],
  [
    "ip link add vx6 address 66:01:02:03:04:06 mtu 1430 type vxlan id 4096 local fd05::1 dev eth0 dstport 4789 nolearning",
    createVxlan({
      ...{ name: "vx6", mac: Uint8Array.fromHex("660102030406"), mtu: 1430, state: "down" },
      ...{ id: 4096, local: address("fd05::1"), underlyingIndex: 3, port: 4789 },
    }),
    "84000000100005060000000000000000000000000000000000000000000000000a000100660102030406000008000400960500000800030076783600480012000900010076786c616e000000380002000800030003000000080001000010000014001100fd050000000000000000000000000001050007000000000006000f0012b50000",
  ],
  [
    "ip link set vx4 type vxlan local 192.168.5.9",
    changeVxlan({ name: "vx4", index: 4 }, { local: address("192.168.5.9") }),
    "3c000000100005000000000000000000000000000400000000000000000000001c0012000900010076786c616e0000000c00020008000400c0a80509",
  ],
  [
    "ip link add tunl0 mtu 1480 type ipip",
    createIpip({ name: "tunl0", mtu: 1480, state: "down" }),
    "400000001000050600000000000000000000000000000000000000000000000008000400c80500000a00030074756e6c300000000c0012000800010069706970",
  ],
  [
    "bridge fdb replace 66:aa:bb:cc:dd:ee dev vx4 dst 192.168.5.2 self permanent",
    setForwardingEntry({ linkIndex: 4, mac: peerMac, remote: address("192.168.5.2") }),
    "300000001c00050500000000000000000700000004000000c00002000a00020066aabbccddee000008000100c0a80502",
  ],
  [
    "bridge fdb del 66:aa:bb:cc:dd:ee dev vx4 dst 192.168.5.2 self",
    deleteForwardingEntry({ linkIndex: 4, mac: peerMac, remote: address("192.168.5.2") }),
    "300000001d00050000000000000000000700000004000000c00002000a00020066aabbccddee000008000100c0a80502",
  ],
  [
    "bridge fdb replace 66:aa:bb:cc:dd:ee dev vx6 dst fd05::2 self permanent",
    setForwardingEntry({ linkIndex: 5, mac: peerMac, remote: address("fd05::2") }),
    "3c0000001c00050500000000000000000700000005000000c00002000a00020066aabbccddee000014000100fd050000000000000000000000000002",
  ],
  [
    "ip route replace 10.9.1.0/26 via 10.9.1.7 dev vx4 onlink proto 86",
    replaceRoute({
      ...{ destination: prefix("10.9.1.0/26"), gateway: address("10.9.1.7"), linkIndex: 4, isOnLink: true },
      protocol: ROUTE_PROTOCOL.own,
    }),
    "34000000180005050000000000000000021a0000fe56000104000000080001000a090100080005000a0901070800040004000000",
  ],
  [
    "ip route replace blackhole 10.9.2.0/26 proto 86",
    replaceRoute({ destination: prefix("10.9.2.0/26"), kind: "blackhole", protocol: ROUTE_PROTOCOL.own }),
    "24000000180005050000000000000000021a0000fe56000600000000080001000a090200",
  ],
];

describe("encodeRequests()", () => {
  test.each(GOLDEN)("writes what `%s` writes", (_command, request, bytes) => {
    expect(encodeRequests([request], 0).toHex()).toBe(bytes);
  });
});
