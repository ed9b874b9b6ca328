/**
 * Finds and deletes single conntrack entries: for IPv6 addresses, because the kernel inverts that comparison in its own
 * filter, and deletes the entries of all other addresses (seen on Linux 6.18).
 */
import { type Address, addressFromBytes, isSameAddress } from "../ip/address.ts";
import { isKernelError } from "./kernel-error.ts";
import type { AttributeCursor, MessageCursor } from "./netlink/message-reader.ts";
import type { NetlinkRequest } from "./netlink/request.ts";
import { attempt, dump, type NetlinkSocket } from "./netlink-socket.ts";
import { familyNumber } from "./rtnetlink/family.ts";

const SUBSYSTEM = 1 << 8;
const MESSAGE = { list: SUBSYSTEM | 1, remove: SUBSYSTEM | 2 } as const;
const HEADER_LENGTH = 4;
const ATTRIBUTE = { original: 1, reply: 2 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const IPV6 = { source: 3, destination: 4 } as const;
const PROTOCOL = { number: 1, destinationPort: 3 } as const;

/** The fields of the first packet, and who answers. */
export interface TrackedConnection {
  readonly source: Address | undefined;
  readonly destination: Address | undefined;
  readonly replySource: Address | undefined;
  readonly protocol: number;
  readonly destinationPort: number;
}

/** Deletes the IPv6 entries that are wanted; one that has ended meanwhile is ignored. */
export function forgetIpv6(socket: NetlinkSocket, isWanted: (connection: TrackedConnection) => boolean): void {
  const found = dump(socket, listRequest(), (message) => {
    const entry = readEntry(message);
    return isWanted(entry.connection) ? entry.original : undefined;
  });
  for (const failure of attempt(socket, found.map(removeRequest))) {
    if (failure !== undefined && !isKernelError(failure, "ENOENT")) throw failure;
  }
}

function listRequest(): NetlinkRequest {
  return {
    action: "list tracked connections",
    type: MESSAGE.list,
    flags: 0,
    write: (writer) => writer.raw(Uint8Array.of(familyNumber(6), 0, 0, 0)),
  };
}

/** `original`: the attribute that identifies the entry, as it was listed. */
function removeRequest(original: Uint8Array): NetlinkRequest {
  return {
    action: "remove a tracked connection",
    type: MESSAGE.remove,
    flags: 0,
    write(writer) {
      writer.raw(Uint8Array.of(familyNumber(6), 0, 0, 0));
      const tuple = writer.open(ATTRIBUTE.original);
      writer.raw(original);
      writer.close(tuple);
    },
  };
}

interface Tuple {
  source?: Address | undefined;
  destination?: Address | undefined;
  protocol: number;
  destinationPort: number;
}

function readEntry(message: MessageCursor): { readonly connection: TrackedConnection; readonly original: Uint8Array } {
  let original: Uint8Array = new Uint8Array();
  let first: Tuple = { protocol: 0, destinationPort: 0 };
  let reply: Tuple = first;
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.original) {
      original = attributes.copy();
      first = readTuple(attributes.nested());
    }
    if (attributes.type === ATTRIBUTE.reply) reply = readTuple(attributes.nested());
  }
  const { source, destination, protocol, destinationPort } = first;
  return { original, connection: { source, destination, replySource: reply.source, protocol, destinationPort } };
}

function readTuple(attributes: AttributeCursor): Tuple {
  const tuple: Tuple = { protocol: 0, destinationPort: 0 };
  while (attributes.next()) {
    const inner = attributes.nested();
    while (inner.next()) {
      if (attributes.type === TUPLE.ip && inner.type === IPV6.source) tuple.source = addressFromBytes(inner.copy());
      if (attributes.type === TUPLE.ip && inner.type === IPV6.destination)
        tuple.destination = addressFromBytes(inner.copy());
      if (attributes.type === TUPLE.protocol && inner.type === PROTOCOL.number) tuple.protocol = inner.u8();
      if (attributes.type === TUPLE.protocol && inner.type === PROTOCOL.destinationPort)
        tuple.destinationPort = inner.u16Big();
    }
  }
  return tuple;
}

/** An absent field matches any value. */
export function isTracked(
  connection: TrackedConnection,
  filter: { readonly [Field in keyof TrackedConnection]?: TrackedConnection[Field] },
): boolean {
  const hasAddress = (field: "source" | "destination" | "replySource") => {
    const [wanted, found] = [filter[field], connection[field]];
    return wanted === undefined || (found !== undefined && isSameAddress(wanted, found));
  };
  return (
    hasAddress("source") &&
    hasAddress("destination") &&
    hasAddress("replySource") &&
    (filter.protocol === undefined || filter.protocol === connection.protocol) &&
    (filter.destinationPort === undefined || filter.destinationPort === connection.destinationPort)
  );
}
