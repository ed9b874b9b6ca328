/** Reads from the tables what an ordinary ADD and DEL need to know. */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findElements, listRuleHeads } from "../../linux/nftables/read.ts";
import type { NftRule } from "../../linux/nftables/ruleset.ts";
import { recordKey } from "./elements.ts";
import { type PortRecord, type RecordSet, recordOf } from "./port-records.ts";
import { needsNeighbourRule, neighbourComment, RULES_PER_CHAIN, SET, tableOf } from "./table.ts";

/** Records read at once: most pods have fewer. */
const RECORDS_AT_ONCE = 6;

export interface FoundRecords {
  readonly records: readonly PortRecord[];
  /** Where the container is: see netns-mark.ts. */
  readonly netns: string | undefined;
  /** Whether one is missing between two others. */
  readonly hasGap: boolean;
}

/** All records of this owner in the family's table; none if there is no table. */
export function findRecords(socket: NetlinkSocket, family: Family, id: Uint8Array): FoundRecords {
  const records: PortRecord[] = [];
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

export type RuleHead = Pick<NftRule, "chain" | "comment">;

/** All rules of the family's table; none if there is no table. */
export function readRuleHeads(socket: NetlinkSocket, family: Family): readonly RuleHead[] {
  return listRuleHeads(socket, tableOf(family));
}

/** Whether every chain has the expected number of these rules, and each prefix length that the records need has its rule. */
export function hasAllRules(rules: readonly RuleHead[], { family, records }: RecordSet): boolean {
  for (const [chain, count] of RULES_PER_CHAIN[family]) {
    let found = 0;
    for (const rule of rules) if (rule.chain === chain) found++;
    if (found !== count) return false;
  }
  for (const record of records) {
    if (record.kind !== "source") continue;
    const { length } = record.masqueraded;
    if (needsNeighbourRule(family, length) && !rules.some(({ comment }) => comment === neighbourComment(length))) {
      return false;
    }
  }
  return true;
}
