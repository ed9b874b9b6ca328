/**
 * Finds and deletes single conntrack entries: for IPv6 addresses, because the kernel inverts that comparison in its own
 * filter, and deletes the entries of all other addresses (seen on Linux 6.18); and for many addresses at once, because
 * with its own filter the kernel searches its whole table for each of them.
 */
import { type Address, addressBytes, addressFromBytes, type Family, isSameAddress } from "../ip/address.ts";
import { isKernelError } from "./kernel-error.ts";
import type { AttributeCursor, MessageCursor } from "./netlink/message-reader.ts";
import type { NetlinkRequest } from "./netlink/request.ts";
import { attempt, dump, dumpInSteps, dumpSteps, type NetlinkSocket } from "./netlink-socket.ts";
import { familyNumber } from "./rtnetlink/family.ts";

const SUBSYSTEM = 1 << 8;
const MESSAGE = { list: SUBSYSTEM | 1, remove: SUBSYSTEM | 2 } as const;
const HEADER_LENGTH = 4;
const ATTRIBUTE = { original: 1, reply: 2, id: 12, labels: 22 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const IPV6 = { source: 3, destination: 4 } as const;
const SOURCE = { 4: 1, 6: IPV6.source } as const;
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
  const found = dump(socket, listRequest(6), (message) => {
    const entry = readEntry(message);
    return isWanted(entry.connection) ? entry.original : undefined;
  });
  removeEntries(socket, 6, found);
}

/**
 * Deletes the entries of connections that one of the addresses has opened, or answers: one list of all entries of a family,
 * however many addresses there are. `pause` is called between parts of the list: other work may be done meanwhile, but not
 * with this socket. Returns the number of deleted entries.
 */
export async function forgetConnectionsOf(
  socket: NetlinkSocket,
  addresses: readonly Address[],
  pause: () => Promise<void>,
): Promise<number> {
  let count = 0;
  for (const family of FAMILIES) {
    const wanted = new Set(addresses.filter((address) => address.family === family).map(keyOf));
    if (wanted.size === 0) continue;
    const read = (message: MessageCursor) => readOriginalIf(message, family, wanted);
    const found = await dumpInSteps(socket, listRequest(family), { read, pause });
    for (let start = 0; start < found.length; start += REMOVED_AT_ONCE) {
      removeEntries(socket, family, found.slice(start, start + REMOVED_AT_ONCE));
      await pause();
    }
    count += found.length;
  }
  return count;
}

const FAMILIES = [4, 6] as const;
const REMOVED_AT_ONCE = 64;

/** One that has ended meanwhile is ignored. */
function removeEntries(socket: NetlinkSocket, family: Family, entries: readonly Uint8Array[]): void {
  removeRequested(
    socket,
    entries.map((original) => removeRequest(family, { original })),
  );
}

/**
 * What identifies an entry. The kernel's number of it is made of its first packet and its place in memory, which the next one with
 * the same ends often gets. So the entry is found by its replies: one that is translated to another end has others.
 */
export interface ListedEntry {
  readonly family: Family;
  /** The content of its attribute, as it was listed. */
  readonly reply: Uint8Array;
  /** The kernel's. */
  readonly id: number;
}

/** One that has ended meanwhile is ignored. Returns those that were there. */
export function removeListed<Entry extends ListedEntry>(
  socket: NetlinkSocket,
  entries: readonly Entry[],
): readonly Entry[] {
  const requests = entries.map((entry) => removeRequest(entry.family, entry));
  const removed = removeRequested(socket, requests);
  return entries.filter((_, index) => removed[index]);
}

/** Returns for each whether it was removed. Not that of a flowtable, which forwards its packets past all rules. */
function removeRequested(socket: NetlinkSocket, requests: readonly NetlinkRequest[]): readonly boolean[] {
  return attempt(socket, requests).map((failure) => {
    if (failure !== undefined && !isKernelError(failure, "ENOENT", "EBUSY")) throw failure;
    return failure === undefined;
  });
}

/** The attribute that identifies the entry. */
export function readReply(message: MessageCursor): Uint8Array {
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) if (attributes.type === ATTRIBUTE.reply) return attributes.copy();
  return new Uint8Array();
}

/** The same for equal addresses. For every entry of a large table: no address is made. */
function keyOf(address: Address): number | string {
  const bytes = addressBytes(address);
  return address.family === 4
    ? new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
    : Buffer.from(bytes).toString("latin1");
}

/** The attribute that identifies the entry, if a wanted address is the source of its first packet or of its replies. */
function readOriginalIf(
  message: MessageCursor,
  family: Family,
  wanted: ReadonlySet<number | string>,
): Uint8Array | undefined {
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type !== ATTRIBUTE.original && attributes.type !== ATTRIBUTE.reply) continue;
    if (wanted.has(sourceIn(attributes.nested(), family) ?? "")) return readEntry(message).original;
  }
  return undefined;
}

function sourceIn(tuple: AttributeCursor, family: Family): number | string | undefined {
  while (tuple.next()) {
    if (tuple.type !== TUPLE.ip) continue;
    const addresses = tuple.nested();
    while (addresses.next()) {
      if (addresses.type !== SOURCE[family]) continue;
      return family === 4 ? addresses.u32Big() : Buffer.from(addresses.copy()).toString("latin1");
    }
  }
  return undefined;
}

/** Hands on the label of every connection that has one, perhaps twice. A step is one reply of the kernel. */
export function* readLabels(socket: NetlinkSocket, take: (label: Uint8Array) => void): Generator<undefined, void> {
  const read = (message: MessageCursor) => {
    const label = readEntryLabel(message);
    if (label !== undefined) take(label);
    return undefined;
  };
  for (const family of FAMILIES) yield* dumpSteps(socket, listRequest(family), read);
}

function readEntryLabel(message: MessageCursor): Uint8Array | undefined {
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) if (attributes.type === ATTRIBUTE.labels) return attributes.copy();
  return undefined;
}

/** Of all tracked connections of a family. */
export function listRequest(family: Family): NetlinkRequest {
  return {
    action: "list tracked connections",
    type: MESSAGE.list,
    flags: 0,
    write: (writer) => writer.raw(Uint8Array.of(familyNumber(family), 0, 0, 0)),
  };
}

type RemovedEntry = { readonly original: Uint8Array } | Pick<ListedEntry, "reply" | "id">;

/** The entry with this attribute, as it was listed; with a number only if it is its own. */
function removeRequest(family: Family, entry: RemovedEntry): NetlinkRequest {
  return {
    action: "remove a tracked connection",
    type: MESSAGE.remove,
    flags: 0,
    write(writer) {
      writer.raw(Uint8Array.of(familyNumber(family), 0, 0, 0));
      const tuple = writer.open("original" in entry ? ATTRIBUTE.original : ATTRIBUTE.reply);
      writer.raw("original" in entry ? entry.original : entry.reply);
      writer.close(tuple);
      if ("id" in entry) writer.u32Big(ATTRIBUTE.id, entry.id);
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
