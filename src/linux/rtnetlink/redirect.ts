/**
 * The filter that redirects all incoming traffic of a link to another link.
 *
 *   enters the link ── ingress hook ── u32 that matches all ── mirred: leaves through the target
 *
 * A u32 filter with a mask of zero, because some kernels lack `matchall`. It is
 * recognised by its priority and because it matches everything. The kernel chooses its
 * handle, since filters of all priorities share the handles: a fixed one might belong
 * to another program's filter.
 */
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import type { ShapedLink } from "./qdisc.ts";
import { HEADER_LENGTH, INGRESS_HANDLE, RTM, TRAFFIC, trafficHeader } from "./traffic-wire.ts";

export const U32 = { selector: 5, actions: 7 } as const;
const FIRST_ACTION = 1;
const ACTION = { kind: 1, options: 2 } as const;
const MIRRED_PARAMETERS = 2;
const MIRRED_PLACE = { action: 8, direction: 20, target: 24 } as const;
const MIRRED_LENGTH = 28;
/** The packet is consumed: no other filter gets it. */
const STOLEN = 4;
const EGRESS_REDIRECT = 1;
const SELECTOR_LENGTH = 32;
const SELECTOR_PLACE = { keys: 2, firstMask: 16 } as const;
const SELECTOR_KEY_LENGTH = 16;
const TERMINAL = 1;

const PRIORITY = 1;
/** Any protocol, in network byte order. */
const ALL_PROTOCOLS = 0x0300;
const PLACE = (PRIORITY << 16) | ALL_PROTOCOLS;
/** The ingress side of the hook, whether `ingress` or `clsact` provides it. */
const INGRESS_SIDE = INGRESS_HANDLE + 0xfff2;

/**
 * Redirects all incoming traffic of the link to the target. The link must have its ingress hook.
 * `known` is an existing redirection to change; without it, one is added.
 */
export function redirectIngress(link: ShapedLink, targetIndex: number, known?: IngressFilter): NetlinkRequest {
  return {
    action: `redirect the incoming traffic of link "${link.name}"`,
    type: RTM.newFilter,
    flags: FLAG.create,
    write(writer) {
      writer.raw(filterHeader(link, known));
      writer.text(TRAFFIC.kind, "u32");
      const options = writer.openUnmarked(TRAFFIC.options);
      writeRedirection(writer, targetIndex);
      writer.bytes(U32.selector, matchAll());
      writer.close(options);
    },
  };
}

/** Removes the redirection, or without `known` all filters of its priority; ENOENT or EINVAL if there is none. */
export function deleteIngressRedirect(link: ShapedLink, known?: IngressFilter): NetlinkRequest {
  return {
    action: `delete the redirection of link "${link.name}"`,
    type: RTM.deleteFilter,
    flags: 0,
    write(writer) {
      writer.raw(filterHeader(link, known));
      writer.text(TRAFFIC.kind, "u32");
    },
  };
}

export function filterHeader({ index }: ShapedLink, known: Pick<IngressFilter, "handle"> | undefined): Uint8Array {
  return trafficHeader({ linkIndex: index, parent: INGRESS_SIDE, info: PLACE, handle: known?.handle ?? 0 });
}

export function writeRedirection(writer: MessageWriter, targetIndex: number): void {
  const parameters = new Uint8Array(MIRRED_LENGTH);
  const view = new DataView(parameters.buffer);
  view.setInt32(MIRRED_PLACE.action, STOLEN, true);
  view.setInt32(MIRRED_PLACE.direction, EGRESS_REDIRECT, true);
  view.setUint32(MIRRED_PLACE.target, targetIndex, true);

  const actions = writer.openUnmarked(U32.actions);
  const first = writer.openUnmarked(FIRST_ACTION);
  writer.text(ACTION.kind, "mirred");
  const options = writer.open(ACTION.options);
  writer.bytes(MIRRED_PARAMETERS, parameters);
  writer.close(options);
  writer.close(first);
  writer.close(actions);
}

/** One key whose mask is zero. */
function matchAll(): Uint8Array {
  const selector = new Uint8Array(SELECTOR_LENGTH);
  selector[0] = TERMINAL;
  selector[SELECTOR_PLACE.keys] = 1;
  return selector;
}

/** A filter at the ingress side of a link. */
export interface IngressFilter {
  readonly kind: string;
  readonly handle: number;
  /** Whether it has the priority and the protocols of a redirection. */
  readonly isInPlace: boolean;
  /** The index of the target link, if the filter redirects everything. */
  readonly redirectsTo?: number;
}

/** All filters at the link's ingress hook; none if it has no hook. */
export function listIngressFilters(socket: NetlinkSocket, link: ShapedLink): IngressFilter[] {
  const request: NetlinkRequest = {
    action: `list the ingress filters of link "${link.name}"`,
    type: RTM.getFilter,
    flags: 0,
    write: (writer) => writer.raw(trafficHeader({ linkIndex: link.index, parent: INGRESS_SIDE })),
  };
  return dump(socket, request, readFilter);
}

/** Whether the filter is one that `redirectIngress` creates, whatever its target. */
export function isRedirect({ redirectsTo }: IngressFilter): boolean {
  return redirectsTo !== undefined;
}

export function isRedirectTo({ redirectsTo }: IngressFilter, targetIndex: number): boolean {
  return redirectsTo === targetIndex;
}

/** The kernel also lists the filter's hash tables: they have their own handle and no action. */
function readFilter(message: MessageCursor): IngressFilter | undefined {
  if (message.type !== RTM.newFilter) return undefined;
  const handle = message.view.getUint32(message.start + 8, true);
  if (handle === 0) return undefined;
  const isInPlace = message.view.getUint32(message.start + 16, true) === PLACE;
  let kind = "";
  let redirectsTo: number | undefined;
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === TRAFFIC.kind) kind = attributes.text();
    if (attributes.type === TRAFFIC.options && kind === "u32" && isInPlace) {
      if (matchesAll(attributes.nested())) redirectsTo = readTarget(attributes.nested());
    }
  }
  if (kind === "u32" && (handle & 0xfff) === 0) return undefined;
  return redirectsTo === undefined ? { kind, handle, isInPlace } : { kind, handle, isInPlace, redirectsTo };
}

function matchesAll(options: AttributeCursor): boolean {
  while (options.next()) if (options.type === U32.selector) return hasNoMask(options.copy());
  return false;
}

function hasNoMask(selector: Uint8Array): boolean {
  const view = new DataView(selector.buffer);
  for (let index = 0; index < (selector[SELECTOR_PLACE.keys] ?? 0); index++) {
    if (view.getUint32(SELECTOR_PLACE.firstMask + index * SELECTOR_KEY_LENGTH) !== 0) return false;
  }
  return true;
}

function readTarget(options: AttributeCursor): number | undefined {
  while (options.next()) {
    if (options.type !== U32.actions) continue;
    const actions = options.nested();
    while (actions.next()) {
      const target = readMirred(actions.nested());
      if (target !== undefined) return target;
    }
  }
  return undefined;
}

function readMirred(action: AttributeCursor): number | undefined {
  let kind = "";
  while (action.next()) {
    if (action.type === ACTION.kind) kind = action.text();
    if (action.type !== ACTION.options || kind !== "mirred") continue;
    const options = action.nested();
    while (options.next()) {
      if (options.type !== MIRRED_PARAMETERS) continue;
      const view = new DataView(options.copy().buffer);
      if (view.getInt32(MIRRED_PLACE.direction, true) === EGRESS_REDIRECT)
        return view.getUint32(MIRRED_PLACE.target, true);
    }
  }
  return undefined;
}
