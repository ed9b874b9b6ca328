/** What the kernel tracks of connections, as far as the product asks for it. The model has none: nothing is found. */
import type { MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { Refused } from "./refused.ts";

export const CONNTRACK = 1 << 8;
const MESSAGE = { list: CONNTRACK | 1, remove: CONNTRACK | 2 } as const;
const HEADER_LENGTH = 4;
const FILTER = 25;

export function answerConntrack(message: MessageCursor): void {
  const isList = (message.flags & FLAG.dump) === FLAG.dump;
  if (message.type !== (isList ? MESSAGE.list : MESSAGE.remove)) throw new Refused("EOPNOTSUPP");
  // One entry must exist; a filter may match none.
  if (!isList && !hasFilter(message)) throw new Refused("ENOENT");
}

function hasFilter(message: MessageCursor): boolean {
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) if (attributes.type === FILTER) return true;
  return false;
}
