/** Rules that choose the routing table by the source address of a packet. */
import { addressBytes } from "../../ip/address.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { familyNumber } from "./family.ts";

const NEW_RULE = 32;
const ATTRIBUTE = { source: 2, priority: 6, table: 15 } as const;
const HEADER_LENGTH = 12;
const TO_TABLE = 1;

export interface SourceRule {
  readonly source: Prefix;
  readonly table: number;
  /** Lower numbers are tried first. */
  readonly priority: number;
}

/** EEXIST if there is such a rule already. */
export function addRule({ source, table, priority }: SourceRule): NetlinkRequest {
  return {
    action: `add a rule for packets from ${formatPrefix(source)}`,
    type: NEW_RULE,
    flags: FLAG.create | FLAG.exclusive,
    write(writer) {
      // struct fib_rule_hdr
      const header = new Uint8Array(HEADER_LENGTH);
      header[0] = familyNumber(source.network.family);
      header[2] = source.length;
      header[7] = TO_TABLE;
      writer.raw(header);
      writer.bytes(ATTRIBUTE.source, addressBytes(source.network));
      writer.u32(ATTRIBUTE.priority, priority);
      writer.u32(ATTRIBUTE.table, table);
    },
  };
}
