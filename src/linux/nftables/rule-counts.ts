/** Decodes what the counter of a rule has counted, and what the rule does with a packet. Pure. */
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import { EXPRESSION } from "./expression-wire.ts";
import { findComment } from "./userdata.ts";
import { readData, type Verdict } from "./verdict.ts";
import * as wire from "./wire.ts";

export interface RuleCount {
  readonly chain: string;
  readonly comment?: string;
  /** What happens to the counted packets; absent if the rule does not end its chain. */
  readonly verdict?: Verdict["kind"];
  /** The chain that they go or jump to. */
  readonly target?: string;
  readonly packets: number;
  readonly bytes: number;
}

/** `undefined` if the rule has no counter. */
export function readRuleCount(message: MessageCursor): RuleCount | undefined {
  if (message.type !== wire.MESSAGE.newRule) return undefined;
  let chain = "";
  let comment: string | undefined;
  let found: Omit<RuleCount, "chain" | "comment"> | undefined;
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.RULE.chain) chain = attributes.text();
    else if (attributes.type === wire.RULE.expressions) found = readCount(attributes.nested());
    else if (attributes.type === wire.RULE.userdata) comment = findComment(attributes.copy());
  }
  return found && { chain, ...(comment === undefined ? {} : { comment }), ...found };
}

function readCount(list: AttributeCursor): Omit<RuleCount, "chain" | "comment"> | undefined {
  let count: { packets: number; bytes: number } | undefined;
  let verdict: Verdict | undefined;
  while (list.next()) {
    const entry = list.nested();
    let name = "";
    while (entry.next()) {
      if (entry.type === EXPRESSION.name) name = entry.text();
      else if (entry.type === EXPRESSION.data && name === "counter") count = readCounter(entry.nested());
      else if (entry.type === EXPRESSION.data && name === "immediate") verdict = readVerdictOf(entry.nested());
    }
  }
  if (count === undefined || verdict === undefined) return count;
  return { ...count, verdict: verdict.kind, ...("chain" in verdict ? { target: verdict.chain } : {}) };
}

function readCounter(fields: AttributeCursor): { packets: number; bytes: number } {
  const count = { packets: 0, bytes: 0 };
  while (fields.next()) {
    if (fields.type === EXPRESSION.counter.bytes) count.bytes = Number(fields.u64Big());
    if (fields.type === EXPRESSION.counter.packets) count.packets = Number(fields.u64Big());
  }
  return count;
}

function readVerdictOf(fields: AttributeCursor): Verdict | undefined {
  while (fields.next()) {
    if (fields.type !== EXPRESSION.immediate.data) continue;
    const data = readData(fields.nested());
    return data instanceof Uint8Array ? undefined : data;
  }
  return undefined;
}
