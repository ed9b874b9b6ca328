/**
 * Filters that send packets to and from 127.0.0.0/8 back where they came from, at the
 * ingress hook of a link: the pod that sent them discards them. They work without
 * nftables, so they stay when somebody flushes the ruleset.
 *
 * The kernel removes the outer tag of a frame before this hook, and inner tags of VLAN 0 after it. So
 * a frame with a tag inside a tag, whose address no filter can find, is sent back whatever it contains.
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
import {
  deleteIngressRedirect,
  filterHeader,
  type IngressFilter,
  listIngressFilters,
  U32,
  writeRedirection,
} from "./redirect.ts";
import { RTM, TRAFFIC } from "./traffic-wire.ts";

interface Key {
  readonly mask: number;
  readonly value: number;
  /** From the header behind the outer tag. */
  readonly offset: number;
}

const IPV4: Key = { mask: 0xf000_0000, value: 0x4000_0000, offset: 0 };
/** 127 as the first byte of an address. */
const LOOPBACK = { mask: 0xff00_0000, value: 0x7f00_0000 };
/** The EtherType, which ends the Ethernet header. */
const ETHER_TYPE = { mask: 0x0000_ffff, offset: -4 };

const FILTERS: readonly { readonly handle: number; readonly keys: readonly Key[] }[] = [
  { handle: 0x8000_0001, keys: [IPV4, { ...LOOPBACK, offset: 16 }] },
  { handle: 0x8000_0002, keys: [IPV4, { ...LOOPBACK, offset: 12 }] },
  { handle: 0x8000_0003, keys: [{ ...ETHER_TYPE, value: 0x8100 }] },
  { handle: 0x8000_0004, keys: [{ ...ETHER_TYPE, value: 0x88a8 }] },
];
const TERMINAL = 1;
const HEADER_LENGTH = 16;
const KEY_LENGTH = 16;

/** Throws if the kernel cannot do it. Filters that exist already stay. */
export function reflectLoopback(socket: NetlinkSocket, link: ShapedLink): void {
  const [hook, ...filters] = attempt(socket, [
    ensureIngressHook(link),
    ...FILTERS.map((filter) => filterRequest(link, filter)),
  ]);
  if (hook !== undefined && findIngressHook(socket, link)?.kind !== "clsact") throw hook;
  for (const refusal of filters) if (refusal !== undefined) throw refusal;
}

/** Removes the hook too if nobody else has a filter there. */
export function removeLoopbackFilters(socket: NetlinkSocket, link: ShapedLink): void {
  const filters = listIngressFilters(socket, link);
  const own = filters.filter(isLoopbackFilter);
  const removesHook = own.length === filters.length && findIngressHook(socket, link)?.kind === "ingress";
  // Whatever is gone already need not be removed.
  attempt(socket, removesHook ? [deleteIngressHook(link)] : own.map((each) => deleteIngressRedirect(link, each)));
}

/** How many of the filters the link has. */
export function loopbackFilterState(socket: NetlinkSocket, link: ShapedLink): "all" | "some" | "none" {
  const count = listIngressFilters(socket, link).filter(isLoopbackFilter).length;
  if (count === 0) return "none";
  return count === FILTERS.length ? "all" : "some";
}

function isLoopbackFilter({ isInPlace, handle }: IngressFilter): boolean {
  return isInPlace && FILTERS.some((filter) => filter.handle === handle);
}

function filterRequest(link: ShapedLink, { handle, keys }: (typeof FILTERS)[number]): NetlinkRequest {
  return {
    action: `guard the loopback of the host on link "${link.name}"`,
    type: RTM.newFilter,
    flags: FLAG.create,
    write(writer) {
      writer.raw(filterHeader(link, { handle }));
      writer.text(TRAFFIC.kind, "u32");
      const options = writer.openUnmarked(TRAFFIC.options);
      writeRedirection(writer, link.index);
      writer.bytes(U32.selector, selectorOf(keys));
      writer.close(options);
    },
  };
}

/** All keys must match. */
function selectorOf(keys: readonly Key[]): Uint8Array {
  const selector = new Uint8Array(HEADER_LENGTH + keys.length * KEY_LENGTH);
  const view = new DataView(selector.buffer);
  selector[0] = TERMINAL;
  selector[2] = keys.length;
  for (const [index, { mask, value, offset }] of keys.entries()) {
    const start = HEADER_LENGTH + index * KEY_LENGTH;
    // Mask and value in network order, offsets in that of the host.
    view.setUint32(start, mask);
    view.setUint32(start + 4, value);
    view.setInt32(start + 8, offset, true);
  }
  return selector;
}
