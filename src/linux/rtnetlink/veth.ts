/**
 * Creates a veth pair, with each end in its namespace.
 *
 *   this namespace                    the other namespace
 *   host ── up at once ═══ wire ═══   peer ── down until `changeLink` (the kernel cannot create it up)
 */
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { writeKind } from "./create-link.ts";
import { IFF_UP, LINK, linkHeader, RTM } from "./link-wire.ts";

const VETH_PEER = 1;

export interface VethEnd {
  readonly name: string;
  /** If absent, the kernel chooses one at random. */
  readonly mac?: Uint8Array;
}

export interface VethPair {
  /** The end in the socket's namespace. */
  readonly host: VethEnd & { readonly state: "up" | "down"; readonly group?: number };
  /** The end that is created in the namespace of the file descriptor. */
  readonly peer: VethEnd & { readonly netnsFd: number };
  /** For both ends; if absent, the kernel's default. */
  readonly mtu?: number;
  /** Transmit and receive queues of both ends; if absent, the kernel's default. */
  readonly queues?: number;
}

export function createVeth(pair: VethPair): NetlinkRequest {
  return {
    action: `create the veth pair "${pair.host.name}" and "${pair.peer.name}"`,
    type: RTM.newLink,
    flags: FLAG.create | FLAG.exclusive,
    write(writer) {
      const flags = pair.host.state === "up" ? IFF_UP : 0;
      writer.raw(linkHeader(0, flags, flags));
      writeEnd(writer, pair, pair.host);
      if (pair.host.group !== undefined) writer.u32(LINK.group, pair.host.group);
      writeKind(writer, "veth", () => writePeer(writer, pair));
    },
  };
}

function writePeer(writer: MessageWriter, pair: VethPair): void {
  const peer = writer.openUnmarked(VETH_PEER);
  writer.raw(linkHeader(0));
  writeEnd(writer, pair, pair.peer, pair.peer.netnsFd);
  writer.close(peer);
}

function writeEnd(writer: MessageWriter, pair: VethPair, end: VethEnd, netnsFd?: number): void {
  if (pair.mtu !== undefined) writer.u32(LINK.mtu, pair.mtu);
  if (pair.queues !== undefined) {
    writer.u32(LINK.transmitQueues, pair.queues);
    writer.u32(LINK.receiveQueues, pair.queues);
  }
  if (end.mac !== undefined) writer.bytes(LINK.address, end.mac);
  if (netnsFd !== undefined) writer.u32(LINK.netnsFd, netnsFd);
  writer.text(LINK.name, end.name);
}
