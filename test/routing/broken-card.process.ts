/**
 * A network card that does not know VXLAN: `bun broken-card.process.ts INSIDE OUTSIDE EVERY`. Relays frames between two links
 * of its namespace. What comes from INSIDE asks the card for checksums, as Linux does; those of tunnelled packets are left as
 * they are, which is wrong: of each one if EVERY is 1, of one in five, at random, if it is 5. All others, and what comes from OUTSIDE,
 * are passed on with what they ask for.
 */
import * as libc from "../../src/linux/libc.ts";
import { isReadyWithin, POLL_IN } from "../../src/linux/poll.ts";

const AF_PACKET = 17;
const SOCK_RAW = 3;
const EVERY_PROTOCOL = 0x0300;
const SOL_PACKET = 263;
const PACKET_VNET_HDR = 15;
const PACKET_IGNORE_OUTGOING = 23;
const MSG_DONTWAIT = 0x40;
const [SOL_SOCKET, SO_RCVBUFFORCE] = [1, 33];
/** It loses nothing if many packets come at once. */
const BUFFER_BYTES = 1 << 24;
/** `struct virtio_net_hdr`: flags, type and sizes of segments, then where the checksum begins. */
const [NEEDS_CHECKSUM, CHECKSUM_START] = [1, 6];
/** Headers of Ethernet, IPv4, UDP, VXLAN, Ethernet and IPv4: the payload of a tunnel begins here, or later with IPv6. */
const INNER = 84;

const [inside, outside] = process.argv.slice(2, 4).map(openLink);
const every = Number(process.argv[4]);
if (inside === undefined || outside === undefined) throw new Error("two links are needed");
const frame = new Uint8Array(70_000);
process.stdout.write("ready\n");
for (;;) {
  relay(inside, outside, (header) => {
    const isTunnelled = header.getUint16(CHECKSUM_START, true) >= INNER;
    const isAsked = (header.getUint8(0) & NEEDS_CHECKSUM) !== 0;
    if (isAsked && isTunnelled && Math.random() * every < 1) header.setUint8(0, 0);
  });
  relay(outside, inside, () => {});
  isReadyWithin(inside, POLL_IN, 1);
}

function relay(from: number, to: number, change: (header: DataView) => void): void {
  for (;;) {
    const length = libc.recv(from, frame, frame.length, MSG_DONTWAIT);
    if (length <= 0) return;
    change(new DataView(frame.buffer, 0, 10));
    libc.sendto(to, frame, length, 0);
  }
}

function openLink(name: string): number {
  const socket = libc.socket(AF_PACKET, SOCK_RAW, EVERY_PROTOCOL);
  for (const option of [PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING]) {
    if (libc.setsockopt(socket, SOL_PACKET, option, Int32Array.of(1), 4) < 0) throw new Error(`option ${option}`);
  }
  if (libc.setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, Int32Array.of(BUFFER_BYTES), 4) < 0)
    throw new Error("buffer");
  const address = new Uint8Array(20);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, EVERY_PROTOCOL, true);
  view.setInt32(4, linkIndex(name), true);
  if (libc.bind(socket, address, address.length) < 0) throw new Error(`cannot bind to ${name}: ${libc.lastErrno()}`);
  return socket;
}

function linkIndex(name: string): number {
  const { stdout } = Bun.spawnSync(["ip", "-j", "link", "show", name]);
  const [link] = JSON.parse(stdout.toString()) as readonly { readonly ifindex: number }[];
  if (link === undefined) throw new Error(`no link ${name}`);
  return link.ifindex;
}
