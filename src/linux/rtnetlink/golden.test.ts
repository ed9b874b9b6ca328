/** The requests byte for byte as iproute2 6.1 sends them: captured with `strace -e write=all`, sequence number cleared. */
import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ip.ts";
import { encodeRequests, type NetlinkRequest } from "../netlink/request.ts";
import { addAddress } from "./address.ts";
import { changeLink, deleteLink } from "./link.ts";
import { setNeighbour } from "./neighbour.ts";
import { addRoute, deleteRoute, replaceRoute } from "./route.ts";
import { createVeth } from "./veth.ts";

const link = { index: 2, name: "vt0" };
const hostMac = Uint8Array.fromHex("eeeeeeeeeeee");
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
];

describe("encodeRequests()", () => {
  test.each(GOLDEN)("writes what `%s` writes", (_command, request, bytes) => {
    expect(encodeRequests([request], 0).toHex()).toBe(bytes);
  });
});
