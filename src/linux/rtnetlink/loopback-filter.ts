/**
 * Filters that send packets to and from 127.0.0.0/8 back where they came from, at the
 * ingress hook of a link: the pod that sent them discards them. They work without
 * nftables, so they stay when somebody flushes the ruleset.
 *
 * On a bridge they discard packets of all its ports: the bridge does not deliver a packet
 * to its own address.
 *
 * They share the priority of the redirection for shaping (redirect.ts), and come
 * before it by their handles: the kernel chooses larger ones.
 */
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { attempt, type NetlinkSocket } from "../netlink-socket.ts";
import { deleteIngressHook, ensureIngressHook, findIngressHook, type ShapedLink } from "./qdisc.ts";
import { deleteIngressRedirect, filterHeader, listIngressFilters, U32, writeRedirection } from "./redirect.ts";
import { RTM, TRAFFIC } from "./traffic-wire.ts";

const SIDES = [
  { handle: 0x8000_0001, offset: 16 },
  { handle: 0x8000_0002, offset: 12 },
] as const;
const TERMINAL = 1;
const KEYS = 2;
const HEADER_LENGTH = 16;
const KEY_LENGTH = 16;

/** Throws if the kernel cannot do it. Filters that exist already stay. */
export function reflectLoopback(socket: NetlinkSocket, link: ShapedLink): void {
  const [hook, ...filters] = attempt(socket, [
    ensureIngressHook(link),
    ...SIDES.map((side) => filterRequest(link, side)),
  ]);
  if (hook !== undefined && findIngressHook(socket, link)?.kind !== "clsact") throw hook;
  for (const refusal of filters) if (refusal !== undefined) throw refusal;
}

/** Removes the hook too if nobody else has a filter there. */
export function removeLoopbackFilters(socket: NetlinkSocket, link: ShapedLink): void {
  const filters = listIngressFilters(socket, link);
  const own = filters.filter(({ isInPlace, handle }) => isInPlace && SIDES.some((side) => side.handle === handle));
  const removesHook = own.length === filters.length && findIngressHook(socket, link)?.kind === "ingress";
  // Whatever is gone already need not be removed.
  attempt(socket, removesHook ? [deleteIngressHook(link)] : own.map((each) => deleteIngressRedirect(link, each)));
}

function filterRequest(link: ShapedLink, { handle, offset }: (typeof SIDES)[number]): NetlinkRequest {
  return {
    action: `guard the loopback of the host on link "${link.name}"`,
    type: RTM.newFilter,
    flags: FLAG.create,
    write(writer) {
      writer.raw(filterHeader(link, { handle }));
      writer.text(TRAFFIC.kind, "u32");
      const options = writer.openUnmarked(TRAFFIC.options);
      writeRedirection(writer, link.index);
      writer.bytes(U32.selector, selectorOf(offset));
      writer.close(options);
    },
  };
}

/** IPv4, and 127 as the first byte of the address. */
function selectorOf(offset: number): Uint8Array {
  const selector = new Uint8Array(HEADER_LENGTH + KEYS * KEY_LENGTH);
  const view = new DataView(selector.buffer);
  selector[0] = TERMINAL;
  selector[2] = KEYS;
  const keys = [
    { mask: 0xf000_0000, value: 0x4000_0000, offset: 0 },
    { mask: 0xff00_0000, value: 0x7f00_0000, offset },
  ];
  for (const [index, key] of keys.entries()) {
    const start = HEADER_LENGTH + index * KEY_LENGTH;
    // Mask and value in network order, offsets in that of the host.
    view.setUint32(start, key.mask);
    view.setUint32(start + 4, key.value);
    view.setInt32(start + 8, key.offset, true);
  }
  return selector;
}
