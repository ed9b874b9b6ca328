import { describe, expect, test } from "bun:test";
import type { TrackedTuple } from "./conntrack-message.ts";
import { readGroupPacket } from "./log-group.ts";
import { MessageCursor } from "./netlink/message-reader.ts";
import { readWholeHead } from "./packet-head.ts";

/** From Debian's kernel 6.12: the first packet to a Service, translated, which a rule at the hook forward reports. */
const TCP = [
  // struct nlmsghdr, struct nfgenmsg
  "a801000000040000000000000000000002007666",
  // packet
  "0800010008000200",
  // prefix
  "19000a0077692073686f702f646220696e6772657373203000000000",
  // interfaces and hardware
  "080004000000000208000500000000031000080000060000f2326b0ae261000006000f000001000006001100000e0000120010001e308bd0c5daf2326b0ae26108000000",
  // time
  "14000300000000006afe7e8300000000000c2451",
  // connection: original, reply, id, status, timeout, state of the protocol, mark, label
  "d0001280",
  "3400018014000180080001000a3d0002080002000a6000011c0002800500010006000000060002008eae00000600030000500000",
  "3400028014000180080001000a3d0102080002000a3d00021c0002800500010006000000060002001f900000060003008eae0000",
  "08000c005af52378",
  "0800030000000120",
  "0800070000000078",
  "300004802c00018005000100010000000500020007000000050003000000000006000400030000000600050000000000",
  "0800080000000000",
  "1400160000000000000000070000000000000000",
  // its info: new
  "0800130000000002",
  // payload
  "400009004500003c626240003f06c3dc0a3d00020a3d01028eae1f907264664700000000a002faf015ac0000020405b40402080afcca5cef0000000001030307",
].join("");
const UDP6 = [
  // struct nlmsghdr, struct nfgenmsg
  "a00100000004000000000000000000000a007666",
  // packet
  "0800010086dd0200",
  // prefix
  "19000a0077692073686f702f646220696e6772657373203000000000",
  // interfaces and hardware
  "080004000000000208000500000000031000080000060000f2326b0ae261000006000f000001000006001100000e0000120010001e308bd0c5daf2326b0ae26186dd0000",
  // time
  "14000300000000006afe7e86000000000004d7c1",
  // connection: original, reply, id, status, timeout, state of the protocol, mark, label
  "d0001280",
  "4c0001802c00018014000300fd61000000000000000000000000000214000400fd9600000000000000000000000000011c0002800500010011000000060002008f9a00000600030000350000",
  "4c0002802c00018014000300fd61000100000000000000000000000214000400fd6100000000000000000000000000021c00028005000100110000000600020014e90000060003008f9a0000",
  "08000c003bec9b34",
  "0800030000000120",
  "080007000000001e",
  "0800080000000000",
  "1400160000000000000000070000000000000000",
  // its info: new
  "0800130000000002",
  // payload
  "35000900600f17de0009113ffd610000000000000000000000000002fd6100010000000000000000000000028f9a14e90009fae20a000000",
].join("");

const CONNECTION = "d0001280";
const INFO = "0800130000000002";

function read(hex: string) {
  const message = new MessageCursor(Uint8Array.fromHex(hex));
  message.next();
  const packet = readGroupPacket(message);
  if (packet === undefined || packet === "unreadable") throw new Error(`not a packet: ${packet}`);
  return packet;
}

function tupleText({ protocol, source, sourcePort, destination, destinationPort }: TrackedTuple): string {
  const words = (address: Uint32Array) => Array.from(address, (word) => word.toString(16)).join(":");
  return `${protocol} ${words(source)} ${sourcePort} -> ${words(destination)} ${destinationPort}`;
}

describe("readGroupPacket()", () => {
  test("reads the connection before and after its translation, and its label", () => {
    const { prefix, time, bytes, connection } = read(TCP);

    expect({ prefix, time, port: readWholeHead(bytes)?.destination.port }).toEqual({
      ...{ prefix: "wi shop/db ingress 0", time: 1_795_063_427_795.729, port: 8080 },
    });
    expect(connection).toMatchObject({ family: 4, id: 0x5af52378, status: 0x120 });
    expect(connection && [tupleText(connection.original), tupleText(connection.reply)]).toEqual([
      "6 a3d0002:0:0:0 36526 -> a600001:0:0:0 80",
      "6 a3d0102:0:0:0 8080 -> a3d0002:0:0:0 36526",
    ]);
    expect([...(connection?.label ?? [])]).toEqual([0, 0x07000000, 0, 0]);
  });

  test("reads one of IPv6", () => {
    const { connection } = read(UDP6);

    expect(connection && [connection.family, tupleText(connection.original), tupleText(connection.reply)]).toEqual([
      6,
      "17 fd610000:0:0:2 36762 -> fd960000:0:0:1 53",
      "17 fd610001:0:0:2 5353 -> fd610000:0:0:2 36762",
    ]);
  });

  const notOwn: readonly [string, string][] = [
    ["no info", "0800140000000002"],
    ["an info that is cut", "0600130000000002"],
    ["the connection that an ICMP error is about", "0800130000000001"],
    ["an answer", "0800130000000003"],
    ["an untracked packet", "0800130000000007"],
  ];
  for (const [name, info] of notOwn)
    test(`has no connection with ${name}`, () => {
      const packet = read(TCP.replace(INFO, info));
      expect([packet.connection, packet.prefix]).toEqual([undefined, "wi shop/db ingress 0"]);
    });

  test("a connection that cannot be read costs the packet nothing else, wherever it is damaged", () => {
    const start = TCP.indexOf(CONNECTION) / 2;
    const whole = Uint8Array.fromHex(TCP);
    const length = 0xd0;
    let unread = 0;
    for (let at = start + 4; at < start + length; at++)
      for (const value of [0, 1, 3, 0x7f, 0xff]) {
        const damaged = whole.slice();
        damaged[at] = value;
        const packet = read(damaged.toHex());
        expect(packet.prefix).toBe("wi shop/db ingress 0");
        expect(packet.bytes.length).toBe(60);
        if (packet.connection === undefined) unread += 1;
      }
    expect(unread).toBeGreaterThan(50);
  });

  test("what the packet holds is not taken for its connection", () => {
    const forged = Uint8Array.fromHex(TCP.slice(TCP.indexOf(CONNECTION), TCP.indexOf(CONNECTION) + 2 * 0xd0));
    const [head, payload] = [TCP.slice(0, TCP.indexOf(CONNECTION)), `${forged.toHex()}${INFO}`];
    const attribute = `${(4 + payload.length / 2).toString(16)}000900${payload}`;
    const whole = `${head}${attribute}`;
    const packet = read(`${(whole.length / 2 - 256).toString(16).padStart(2, "0")}01${whole.slice(4)}`);
    expect([packet.connection, packet.bytes.toHex()]).toEqual([undefined, payload]);
  });

  test("a message whose attributes do not fit is said to be unreadable", () => {
    const bytes = Uint8Array.fromHex(TCP);
    bytes[20] = 3;
    const message = new MessageCursor(bytes);
    message.next();
    expect(readGroupPacket(message)).toBe("unreadable");
  });
});
