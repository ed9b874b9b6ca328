/** What the tables hold, as far as the usual ADD and DEL need to know. Reads only. */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findElements, listRuleHeads } from "../../linux/nftables/read.ts";
import { recordKey } from "./elements.ts";
import { type KeptRecord, recordOf } from "./holding.ts";
import { neighbourComment, RULES_PER_CHAIN, SET, tableOf } from "./table.ts";

/** Records asked for at once: most pods have fewer. */
const RECORDS_AT_ONCE = 6;

export interface KeptRecords {
  readonly records: readonly KeptRecord[];
  /** Where the container is: see netns-mark.ts. */
  readonly netns: string | undefined;
  /** Whether one is missing in the midst of them. */
  readonly hasGap: boolean;
}

/** All that this owner has in the family's table; nothing where there is no table. */
export function findRecords(socket: NetlinkSocket, family: Family, id: Uint8Array): KeptRecords {
  const records: KeptRecord[] = [];
  let netns: string | undefined;
  for (let start = 0; ; start += RECORDS_AT_ONCE) {
    const keys: Uint8Array[] = [];
    for (let offset = 0; offset < RECORDS_AT_ONCE; offset++) keys.push(recordKey(id, start + offset));
    const elements = findElements(socket, tableOf(family), SET.attachments, keys);
    for (const [index, element] of elements.entries()) {
      if (element === undefined) {
        return { records, netns, hasGap: elements.slice(index).some((later) => later !== undefined) };
      }
      netns ??= element.comment;
      const record = recordOf(family, element);
      if (record !== undefined) records.push(record);
    }
  }
}

/** Whether every chain has as many rules as it should, and these prefix lengths have theirs. */
export function hasAllRules(socket: NetlinkSocket, family: Family, lengths: readonly number[]): boolean {
  const rules = listRuleHeads(socket, tableOf(family));
  for (const [chain, count] of RULES_PER_CHAIN[family]) {
    let found = 0;
    for (const rule of rules) if (rule.chain === chain) found++;
    if (found !== count) return false;
  }
  for (const length of lengths) if (!rules.some(({ comment }) => comment === neighbourComment(length))) return false;
  return true;
}
