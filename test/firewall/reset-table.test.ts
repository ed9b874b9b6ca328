/**
 * Which packets of an ended connection are reset, and that a connection with the same addresses and ports that begins after it is not.
 *
 *   client 192.0.2.2 ──▶ host ──▶ server 198.51.100.2, port 80
 *   another pod      ──▶ host, which has the guard of sources
 *
 * The client has one port for all that it opens, so that each connection looks like the one before.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { guardChanges } from "../../src/firewall/guard-rules.ts";
import { type EndedSender, ResetTable } from "../../src/firewall/reset-table.ts";
import { identity } from "../../src/identity.ts";
import { addressBytes } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { closeNetlinkSocket, openNetlinkSocket, ownSockets } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { DOMAIN, socketAddress } from "../../src/linux/socket-address.ts";
import { openTcpProber, probePacket } from "../../src/linux/tcp-probe.ts";
import { internetChecksum } from "../../src/linux/unchecked-datagrams.ts";
import { RESETTING } from "../../src/policy/render/packet-mark.ts";
import { addressOf, systemCall } from "../../src/system-call.ts";
import { type Conversation, type EchoServer, openTcp, serveEchoes } from "../policy/conversation.ts";
import { address } from "../support/ip.ts";
import { isKernelAtLeast } from "../support/kernel-version.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { type CapturedPacket, capturePackets } from "../support/packet-capture.ts";
import { pollUntil } from "../support/poll.ts";

const area = new NetnsArea("resets");
const able = canMakeNetns && isKernelAtLeast("5.12");
const CLIENT_PORT = 40_000;
const SERVER_PORT = 80;
const ADDRESSES = {
  4: { client: "192.0.2.2", server: "198.51.100.2" },
  6: { client: "fd01::2", server: "fd02::2" },
} as const;
const POD_LINK = `${identity.interfacePrefix}pod`;
const FLAG = { syn: 2, reset: 4, ack: 16 } as const;
const TCP_HEADER = 20;
const [SOCK_RAW, IPPROTO_RAW] = [3, 255];

describe.skipIf(!able)(`the table of resets${able ? "" : " (skipped: needs root, ip, nsenter and Linux 5.12)"}`, () => {
  let [client, host, server, pod]: TestNetns[] = [];
  let echoes: EchoServer;

  beforeAll(async () => {
    area.sweep();
    [client, host, server, pod] = ["client", "host", "server", "pod"].map((name) => area.create(name));
    for (const [end, four, six] of [
      [the(client), "192.0.2", "fd01:"],
      [the(server), "198.51.100", "fd02:"],
      [the(pod), "203.0.113", "fd03:"],
    ] as const) {
      const name = end === client ? "toclient" : end === server ? "toserver" : POD_LINK;
      ip(the(host), `link add ${name} type veth peer name eth0 netns ${end.name}`);
      ip(the(host), `link set ${name} up`);
      ip(end, "link set eth0 up");
      for (const [place, device, number] of [
        [the(host), name, 1],
        [end, "eth0", 2],
      ] as const) {
        ip(place, `address add ${four}.${number}/24 dev ${device}`);
        ip(place, `address add ${six}:${number}/64 dev ${device} nodad`);
      }
      ip(end, `route add default via ${four}.1`);
      ip(end, `-6 route add default via ${six}:1`);
    }
    runIn(the(host), [
      "sh",
      "-c",
      "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding",
    ]);
    runIn(the(client), ["sh", "-c", `echo ${CLIENT_PORT} ${CLIENT_PORT} >/proc/sys/net/ipv4/ip_local_port_range`]);
    insideNetns(the(host).path, () => {
      const socket = openNetlinkSocket("netfilter");
      commit(socket, guardChanges());
      closeNetlinkSocket(socket);
    });
    echoes = await serveEchoes(the(server).path, SERVER_PORT);
  });
  afterAll(() => {
    echoes?.[Symbol.dispose]();
    area.sweep();
  });

  const sendersOf = (family: 4 | 6): readonly [EndedSender, EndedSender] => {
    const from = { address: address(ADDRESSES[family].client), port: CLIENT_PORT };
    const to = { address: address(ADDRESSES[family].server), port: SERVER_PORT };
    return [
      { from, to },
      { from: to, to: from },
    ];
  };
  const tableWith = (senders: readonly EndedSender[]): Disposable => {
    const table = insideNetns(the(host).path, () => ResetTable.open(ownSockets, RESETTING));
    table.add(senders);
    return { [Symbol.dispose]: () => table.close() };
  };
  /** In the name of the client. */
  const probeServer = (family: 4 | 6) =>
    insideNetns(the(host).path, () => {
      const prober = openTcpProber(RESETTING.bit);
      const [{ from, to }] = sendersOf(family);
      prober.probe(from, to, "client");
      prober.close();
    });
  /** Of the client, as it would be within a connection or at its beginning. */
  const packetOf = (family: 4 | 6, flag: number): Uint8Array => {
    const [{ from, to }] = sendersOf(family);
    const packet = probePacket(from, to, "client");
    const [header, view] = [packet.length - TCP_HEADER, new DataView(packet.buffer)];
    packet[header + 13] = flag;
    view.setUint16(header + 16, 0);
    const [source, destination] = [from, to].map((end) => addressBytes(end.address));
    const summed = [...(source ?? []), ...(destination ?? []), 0, 6, 0, TCP_HEADER, ...packet.subarray(header)];
    view.setUint16(header + 16, internetChecksum(Uint8Array.from(summed)));
    return packet;
  };
  const send = (place: TestNetns, packet: Uint8Array, to: string) => {
    const { family } = address(to);
    const fd = insideNetns(place.path, () => libc.socket(DOMAIN[family], SOCK_RAW, IPPROTO_RAW));
    const name = socketAddress(address(to), 0);
    expect(systemCall("sendto", fd, packet, packet.length, 0, addressOf(name), name.length)).toBe(packet.length);
    libc.close(fd);
  };
  const open = async (name: string, family: 4 | 6): Promise<Conversation> => {
    const options = { netns: the(client).path, address: ADDRESSES[family].server, port: SERVER_PORT };
    const conversation = await openTcp(name, options);
    if (conversation === undefined) throw new Error(`${name} cannot be opened`);
    return conversation;
  };

  describe.each([4, 6] as const)("over IPv%i", (family) => {
    test("ends what is open, and not a connection that begins with the same ports", async () => {
      using before = await open(`before ${family}`, family);
      expect(await before.works()).toBe(true);
      using _ = tableWith(sendersOf(family));
      expect(await before.works()).toBe(false);
      probeServer(family);
      await pollUntil(() => echoes.hasLost(before.name), "the server to lose it");

      using toServer = capturePackets(the(server).path);
      using toClient = capturePackets(the(client).path);
      using after = await open(`after ${family}`, family);
      expect(await after.works()).toBe(true);
      expect([...toServer.packets(), ...toClient.packets()].filter(isReset)).toEqual([]);
    });

    test("neither answers nor believes what another pod sends in the name of an end", async () => {
      using before = await open(`forged ${family}`, family);
      expect(await before.works()).toBe(true);
      using _ = tableWith(sendersOf(family));
      using toClient = capturePackets(the(client).path);
      for (const flag of [FLAG.ack, FLAG.syn]) send(the(pod), packetOf(family, flag), ADDRESSES[family].server);
      expect([await before.works(), before.isLost]).toEqual([false, true]);
      expect(toClient.packets().filter(isReset)).toHaveLength(1);
      probeServer(family);
      await pollUntil(() => echoes.hasLost(before.name), "the server to lose it");
    });

    test("what a server replies to a packet that made it say where it is opens nothing", async () => {
      using _ = tableWith(sendersOf(family));
      using toServer = capturePackets(the(server).path);
      probeServer(family);
      await pollUntil(() => toServer.packets().some(isReset), "the reset");
      const own = toServer.packets().filter(({ protocol }) => protocol === 6);
      expect(own.map(({ tcpFlags }) => tcpFlags & (FLAG.syn | FLAG.ack | FLAG.reset))).toEqual([
        FLAG.syn,
        FLAG.syn | FLAG.ack,
        FLAG.reset,
      ]);
    });
  });
});

function isReset({ protocol, tcpFlags }: CapturedPacket): boolean {
  return protocol === 6 && (tcpFlags & FLAG.reset) !== 0;
}

function the(netns: TestNetns | undefined): TestNetns {
  if (netns === undefined) throw new Error("no namespace");
  return netns;
}

function ip(place: TestNetns, command: string): void {
  runIn(place, ["ip", ...command.split(" ")]);
}
