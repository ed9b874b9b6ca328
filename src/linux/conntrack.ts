/**
 * Deletes conntrack entries, so that the rules apply again to the next packet: a UDP
 * client keeps its source port, and would otherwise keep sending to a deleted pod.
 *
 * The kernel does the filtering: nothing is listed, whatever the size of its table. Only by IPv6 addresses it cannot.
 */
import { type Address, addressBytes, type Family } from "../ip/address.ts";
import { forgetIpv6, isTracked } from "./conntrack-entries.ts";
import type { MessageWriter } from "./netlink/message-writer.ts";
import type { NetlinkRequest } from "./netlink/request.ts";
import { type NetlinkSocket, perform } from "./netlink-socket.ts";
import { familyNumber } from "./rtnetlink/family.ts";

const DELETE_ENTRY = (1 << 8) | 2;
const ATTRIBUTE = { original: 1, reply: 2, filter: 25 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const PROTOCOL = { number: 1, destinationPort: 3 } as const;
const FILTER = { originalFlags: 1, replyFlags: 2 } as const;
const FILTER_FLAG = { source: 1, destination: 2, protocolNumber: 8, destinationPort: 32 } as const;
// With version 0 the kernel ignores the family and deletes entries of both.
const FAMILY_COUNTS = 1;

/** Fields of the first packet of the connection, except `replySource`; an absent field matches any value. */
export interface ConntrackFilter {
  readonly family: Family;
  readonly source?: Address;
  readonly destination?: Address;
  /** Who answers: after DNAT it is not `destination`. */
  readonly replySource?: Address;
  /** An IP protocol number: 6 TCP, 17 UDP, 132 SCTP. */
  readonly protocol?: number;
  /** Needs `protocol`. */
  readonly destinationPort?: number;
}

/** Removes every entry that matches; succeeds if there is none. `socket` is a netfilter socket. */
export function forgetConnections(socket: NetlinkSocket, filters: readonly ConntrackFilter[]): void {
  const [byKernel, byList] = [filters.filter(isForKernel), filters.filter((filter) => !isForKernel(filter))];
  perform(socket, byKernel.map(forgetRequest));
  if (byList.length > 0) forgetIpv6(socket, (connection) => byList.some((filter) => isTracked(connection, filter)));
}

/** The kernel's filter compares IPv6 addresses wrongly. */
function isForKernel({ family, source, destination, replySource }: ConntrackFilter): boolean {
  return family === 4 || (source === undefined && destination === undefined && replySource === undefined);
}

/** One filter as a message. */
function forgetRequest(filter: ConntrackFilter): NetlinkRequest {
  return {
    action: "remove tracked connections",
    type: DELETE_ENTRY,
    flags: 0,
    write(writer) {
      writer.raw(Uint8Array.of(familyNumber(filter.family), FAMILY_COUNTS, 0, 0));
      const original = writer.open(ATTRIBUTE.original);
      writeAddresses(writer, filter);
      writeProtocol(writer, filter);
      writer.close(original);
      const { family, replySource } = filter;
      const reply = writer.open(ATTRIBUTE.reply);
      if (replySource !== undefined) writeAddresses(writer, { family, source: replySource });
      writer.close(reply);
      const fields = writer.open(ATTRIBUTE.filter);
      writer.u32(FILTER.originalFlags, flagsOf(filter));
      writer.u32(FILTER.replyFlags, replySource === undefined ? 0 : FILTER_FLAG.source);
      writer.close(fields);
    },
  };
}

function writeAddresses(writer: MessageWriter, { family, source, destination }: ConntrackFilter): void {
  if (source === undefined && destination === undefined) return;
  const first = family === 4 ? 1 : 3;
  const addresses = writer.open(TUPLE.ip);
  if (source !== undefined) writer.bytes(first, addressBytes(source));
  if (destination !== undefined) writer.bytes(first + 1, addressBytes(destination));
  writer.close(addresses);
}

function writeProtocol(writer: MessageWriter, { protocol, destinationPort }: ConntrackFilter): void {
  if (protocol === undefined) return;
  const numbers = writer.open(TUPLE.protocol);
  writer.u8(PROTOCOL.number, protocol);
  if (destinationPort !== undefined) writer.u16Big(PROTOCOL.destinationPort, destinationPort);
  writer.close(numbers);
}

function flagsOf(filter: ConntrackFilter): number {
  return (
    (filter.source === undefined ? 0 : FILTER_FLAG.source) |
    (filter.destination === undefined ? 0 : FILTER_FLAG.destination) |
    (filter.protocol === undefined ? 0 : FILTER_FLAG.protocolNumber) |
    (filter.destinationPort === undefined ? 0 : FILTER_FLAG.destinationPort)
  );
}
