/**
 * The connection table of a network namespace, listed as programs do that poll it. Listing also ends the entries whose time is over,
 * which the kernel otherwise does when it gets to them.
 */
import type { MessageCursor } from "../../src/linux/netlink/message-reader.ts";
import { closeNetlinkSocket, dump, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { familyNumber } from "../../src/linux/rtnetlink/family.ts";
import { insideNetns } from "./namespace-sockets.ts";

export interface ConntrackTable extends Disposable {
  /** A text for each connection, that no other one has. */
  list(): readonly string[];
}

const LIST_ENTRIES = (1 << 8) | 1;
const HEADER_LENGTH = 4;
/** Two connections with the same ends have different numbers. */
const ATTRIBUTE = { original: 1, number: 12 } as const;

export function openConntrackTable(netns: string): ConntrackTable {
  const socket = insideNetns(netns, () => openNetlinkSocket("netfilter"));
  const listOf = (family: 4 | 6) => {
    const request = { action: "list tracked connections", type: LIST_ENTRIES, flags: 0 };
    const header = Uint8Array.of(familyNumber(family), 0, 0, 0);
    return dump(socket, { ...request, write: (writer) => writer.raw(header) }, readEntry);
  };
  return {
    list: () => [...listOf(4), ...listOf(6)],
    [Symbol.dispose]: () => closeNetlinkSocket(socket),
  };
}

function readEntry(message: MessageCursor): string {
  const attributes = message.attributes(HEADER_LENGTH);
  let [ends, number] = ["", 0];
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.original) ends = Buffer.from(attributes.copy()).toString("latin1");
    if (attributes.type === ATTRIBUTE.number) number = attributes.u32Big();
  }
  return `${number} ${ends}`;
}
