/**
 * Queueing disciplines: the token bucket at the root of a link, which limits outgoing
 * traffic to a rate, and the hook at which filters process incoming traffic.
 *
 * Setting is idempotent and never replaces what others created: without the flag
 * `replace` the kernel changes a qdisc of the same handle and kind, and refuses to
 * replace another one (EEXIST, or EINVAL if only the handle is the same).
 */
import { isKernelError } from "../kernel-error.ts";
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { attempt, dump, type NetlinkSocket } from "../netlink-socket.ts";
import { HEADER_LENGTH, INGRESS, INGRESS_HANDLE, ROOT, RTM, TRAFFIC, trafficHeader } from "./traffic-wire.ts";

const TOKEN_BUCKET = { parameters: 1, rate64: 4, burst: 6 } as const;
const PARAMETERS_LENGTH = 36;
const PLACE = { linkLayer: 1, cellAlign: 4, rate: 8, limit: 24, buffer: 28 } as const;
const ETHERNET = 1;
/** What `tc` sends in the fields of the rate tables, which the kernel has not used since 3.9. */
const CELL_LOG = 3;
const CELL_ALIGN = -1;
const LARGEST_32_BITS = 0xffffffffn;
const NANOSECONDS = 1_000_000_000n;

/** The unit of the kernel's `buffer`: 64 nanoseconds on every machine (/proc/net/psched). */
const TICK_NANOSECONDS = 64n;

/** The handle of the token bucket: major number 1, as in upstream's plugin. */
const TOKEN_BUCKET_HANDLE = 0x10000;

export interface TokenBucket {
  /** Bytes per second. */
  readonly rate: bigint;
  /** Bytes that may pass at once; at least a whole frame, otherwise the kernel drops it. */
  readonly burst: number;
  /** Bytes that may wait in the queue. */
  readonly limit: number;
}

/** A link, by index for the kernel and by name for messages. */
export interface ShapedLink {
  readonly index: number;
  readonly name: string;
}

/** Limits the outgoing traffic of the link to the rate. */
export function setTokenBucket(link: ShapedLink, bucket: TokenBucket): NetlinkRequest {
  return {
    action: `set the token bucket of link "${link.name}"`,
    type: RTM.newQdisc,
    flags: FLAG.create,
    write(writer) {
      writer.raw(trafficHeader({ linkIndex: link.index, handle: TOKEN_BUCKET_HANDLE, parent: ROOT }));
      writer.text(TRAFFIC.kind, "tbf");
      const options = writer.openUnmarked(TRAFFIC.options);
      writeTokenBucket(writer, bucket);
      writer.close(options);
    },
  };
}

/** Removes the token bucket; ENOENT or EINVAL if the root qdisc is another one or there is none. */
export function deleteTokenBucket(link: ShapedLink): NetlinkRequest {
  return {
    action: `delete the token bucket of link "${link.name}"`,
    type: RTM.deleteQdisc,
    flags: 0,
    write(writer) {
      writer.raw(trafficHeader({ linkIndex: link.index, handle: TOKEN_BUCKET_HANDLE, parent: ROOT }));
      writer.text(TRAFFIC.kind, "tbf");
    },
  };
}

/** Adds the hook for incoming traffic. Succeeds if it exists; refused if there is a `clsact`, which is such a hook too. */
export function ensureIngressHook(link: ShapedLink): NetlinkRequest {
  return ingressHookRequest("add", link, RTM.newQdisc, FLAG.create);
}

/** Removes the hook with all its filters. */
export function deleteIngressHook(link: ShapedLink): NetlinkRequest {
  return ingressHookRequest("delete", link, RTM.deleteQdisc, 0);
}

function ingressHookRequest(verb: string, link: ShapedLink, type: number, flags: number): NetlinkRequest {
  return {
    action: `${verb} the ingress hook of link "${link.name}"`,
    type,
    flags,
    write(writer) {
      writer.raw(trafficHeader({ linkIndex: link.index, handle: INGRESS_HANDLE, parent: INGRESS }));
      writer.text(TRAFFIC.kind, "ingress");
    },
  };
}

function writeTokenBucket(writer: MessageWriter, { rate, burst, limit }: TokenBucket): void {
  const parameters = new Uint8Array(PARAMETERS_LENGTH);
  const view = new DataView(parameters.buffer);
  parameters[0] = CELL_LOG;
  parameters[PLACE.linkLayer] = ETHERNET;
  view.setInt16(PLACE.cellAlign, CELL_ALIGN, true);
  view.setUint32(PLACE.rate, Number(rate > LARGEST_32_BITS ? LARGEST_32_BITS : rate), true);
  view.setUint32(PLACE.limit, limit, true);
  view.setUint32(PLACE.buffer, bufferTicks({ rate, burst }), true);
  writer.bytes(TOKEN_BUCKET.parameters, parameters);
  // If this is present, the kernel uses it instead of the ticks, which would overflow at low rates.
  writer.u32(TOKEN_BUCKET.burst, burst);
  if (rate > LARGEST_32_BITS) writer.u64(TOKEN_BUCKET.rate64, rate);
}

/** The duration of the burst at the rate, in the kernel's ticks: the value that the kernel reports, including its overflow. */
export function bufferTicks({ rate, burst }: Pick<TokenBucket, "rate" | "burst">): number {
  return Number(((BigInt(burst) * NANOSECONDS) / rate / TICK_NANOSECONDS) & LARGEST_32_BITS);
}

/** A qdisc as the kernel describes it. */
export interface Qdisc {
  readonly linkIndex: number;
  readonly kind: string;
  readonly handle: number;
  readonly parent: number;
  readonly tokenBucket?: TokenBucketSeen;
}

/** The kernel reports a burst as its duration. */
export interface TokenBucketSeen {
  readonly rate: bigint;
  readonly limit: number;
  readonly bufferTicks: number;
}

/** The root qdisc of the link; `undefined` if the link does not exist. */
export function findRootQdisc(socket: NetlinkSocket, link: ShapedLink): Qdisc | undefined {
  return readOneQdisc(socket, link, ROOT);
}

/** The hook of the link, of kind `ingress` or `clsact`. */
export function findIngressHook(socket: NetlinkSocket, link: ShapedLink): Qdisc | undefined {
  return readOneQdisc(socket, link, INGRESS);
}

/** Every qdisc of the namespace. */
export function listQdiscs(socket: NetlinkSocket): Qdisc[] {
  const request: NetlinkRequest = {
    action: "list qdiscs",
    type: RTM.getQdisc,
    flags: 0,
    write: (writer) => writer.raw(trafficHeader({ linkIndex: 0 })),
  };
  return dump(socket, request, readQdisc);
}

function readOneQdisc(socket: NetlinkSocket, link: ShapedLink, parent: number): Qdisc | undefined {
  let found: Qdisc | undefined;
  const request: NetlinkRequest = {
    action: `read a qdisc of link "${link.name}"`,
    type: RTM.getQdisc,
    // Older kernels send it only to listeners, unless the reply is requested explicitly.
    flags: FLAG.echo,
    write: (writer) => writer.raw(trafficHeader({ linkIndex: link.index, parent })),
  };
  const [error] = attempt(socket, [request], (message) => {
    found = readQdisc(message);
  });
  if (error === undefined) return found;
  if (isKernelError(error, "ENOENT", "ENODEV")) return undefined;
  throw error;
}

function readQdisc(message: MessageCursor): Qdisc | undefined {
  if (message.type !== RTM.newQdisc) return undefined;
  const { view, start } = message;
  const qdisc: { -readonly [Field in keyof Qdisc]: Qdisc[Field] } = {
    linkIndex: view.getInt32(start + 4, true),
    kind: "",
    handle: view.getUint32(start + 8, true),
    parent: view.getUint32(start + 12, true),
  };
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === TRAFFIC.kind) qdisc.kind = attributes.text();
    else if (attributes.type === TRAFFIC.options && qdisc.kind === "tbf") {
      const tokenBucket = readTokenBucket(attributes.nested());
      if (tokenBucket !== undefined) qdisc.tokenBucket = tokenBucket;
    }
  }
  return qdisc;
}

function readTokenBucket(options: AttributeCursor): TokenBucketSeen | undefined {
  let seen: TokenBucketSeen | undefined;
  let rate64: bigint | undefined;
  while (options.next()) {
    if (options.type === TOKEN_BUCKET.rate64) rate64 = options.u64();
    if (options.type !== TOKEN_BUCKET.parameters) continue;
    const { buffer } = options.copy();
    const view = new DataView(buffer);
    seen = {
      rate: BigInt(view.getUint32(PLACE.rate, true)),
      limit: view.getUint32(PLACE.limit, true),
      bufferTicks: view.getUint32(PLACE.buffer, true),
    };
  }
  return seen === undefined || rate64 === undefined ? seen : { ...seen, rate: rate64 };
}
