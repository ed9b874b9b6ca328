/** A link as the kernel describes it. */
import { addressBytes } from "../../../src/ip/address.ts";
import type { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import type { KernelMessage } from "../message.ts";
import type { ModelLink } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { AF, GROUP, IFLA, INFO, MESSAGE, VXLAN } from "../wire.ts";

const FLAG = {
  up: 1,
  broadcast: 2,
  loopback: 8,
  running: 0x40,
  noArp: 0x80,
  multicast: 0x1000,
  lowerUp: 0x10000,
} as const;
const TYPE = { ether: 1, loopback: 772, ipip: 768 } as const;
const OPER_STATE = { unknown: 0, down: 2, "lower layer down": 3, up: 6 } as const;
/** The number of IPv4 settings of a link in this message. */
const IPV4_SETTINGS = 33;
const IPV4_PLACE = { forwarding: 1, proxy_arp: 3, rp_filter: 8, route_localnet: 27 } as const;

export function linkMessage(
  namespace: Namespace,
  link: ModelLink,
  type: number = MESSAGE.newLink,
  changed = 0,
): KernelMessage {
  return {
    type,
    write(writer) {
      writeHeader(writer, 16, (view) => {
        view.setUint16(2, typeOf(link), true);
        view.setInt32(4, link.index, true);
        view.setUint32(8, flagsOf(link), true);
        view.setUint32(12, changed, true);
      });
      writer.text(IFLA.name, link.name);
      writer.u32(IFLA.transmitQueueLength, link.transmitQueueLength);
      writer.u8(IFLA.operState, OPER_STATE[link.operState]);
      writer.u32(IFLA.mtu, link.mtu);
      writer.u32(IFLA.group, link.group);
      writer.u32(IFLA.transmitQueues, link.transmitQueues);
      writer.u32(IFLA.receiveQueues, link.receiveQueues);
      writer.u8(IFLA.carrier, link.hasCarrier ? 1 : 0);
      if (link.alias !== undefined) writer.text(IFLA.alias, link.alias);
      if (link.mac.length > 0) {
        writer.bytes(IFLA.address, link.mac);
        writer.bytes(IFLA.broadcast, new Uint8Array(link.mac.length).fill(link.name === "lo" ? 0 : 0xff));
      }
      // The first message about the end that is made first knows no other end yet.
      if (link.kind === "veth") writer.u32(IFLA.link, link.peer?.index ?? 0);
      if (link.kind !== undefined) writeInfo(writer, link, link.kind);
      writeFamilies(writer, namespace, link);
    },
  };
}

/** To those who listen to links. */
export function announceLink(namespace: Namespace, link: ModelLink, changed = 0): void {
  namespace.announce(GROUP.link, linkMessage(namespace, link, MESSAGE.newLink, changed));
}

function writeInfo(writer: MessageWriter, { vxlan }: ModelLink, kind: string): void {
  const info = writer.openUnmarked(IFLA.linkInfo);
  writer.text(INFO.kind, kind);
  if (vxlan !== undefined) {
    const data = writer.openUnmarked(INFO.data);
    writer.u32(VXLAN.id, vxlan.id);
    if (vxlan.underlyingIndex !== undefined) writer.u32(VXLAN.link, vxlan.underlyingIndex);
    if (vxlan.local !== undefined) writer.bytes(VXLAN.local[vxlan.family], addressBytes(vxlan.local));
    writer.u8(VXLAN.learning, vxlan.learns ? 1 : 0);
    writer.u16Big(VXLAN.port, vxlan.port);
    writer.close(data);
  }
  writer.close(info);
}

function writeFamilies(writer: MessageWriter, { sysctls }: Namespace, link: ModelLink): void {
  const values = new Uint8Array(IPV4_SETTINGS * 4);
  const view = new DataView(values.buffer);
  for (const [name, place] of Object.entries(IPV4_PLACE)) {
    view.setUint32((place - 1) * 4, Number(sysctls.get(`net/ipv4/conf/${link.name}/${name}`) ?? 0), true);
  }
  const families = writer.openUnmarked(IFLA.families);
  const ipv4 = writer.openUnmarked(AF.inet);
  writer.bytes(1, values);
  writer.close(ipv4);
  writer.close(families);
}

function flagsOf(link: ModelLink): number {
  const running = link.isUp && link.hasCarrier ? FLAG.running | FLAG.lowerUp : 0;
  const up = link.isUp ? FLAG.up : 0;
  return up | running | kindFlags(link);
}

function kindFlags({ name, kind }: ModelLink): number {
  if (name === "lo") return FLAG.loopback;
  if (kind === "ipip") return FLAG.noArp;
  return kind === "ifb" || kind === "dummy" ? FLAG.broadcast | FLAG.noArp : FLAG.broadcast | FLAG.multicast;
}

function typeOf({ name, kind }: ModelLink): number {
  if (name === "lo") return TYPE.loopback;
  return kind === "ipip" ? TYPE.ipip : TYPE.ether;
}
