/** Sums the counters of rules by policy, direction and action. Pure. */
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import { originWords, readRuleComment } from "../../policy/table/rule-comment.ts";

export interface Traffic {
  readonly packets: number;
  readonly bytes: number;
}

export interface PolicyTraffic extends Traffic {
  /** `NAMESPACE/NAME`, or `NAME` of a global policy. */
  readonly policy: string;
  readonly direction: "ingress" | "egress";
  readonly action: "allow" | "deny" | "pass" | "log";
}

export interface OtherDrops extends Traffic {
  /** Why no policy allowed them, in words. */
  readonly reason: string;
}

const ACTION: Readonly<Record<string, PolicyTraffic["action"] | undefined>> = {
  accept: "allow",
  drop: "deny",
  goto: "pass",
  // Log decides nothing.
  "": "log",
};

export interface SummedTraffic {
  readonly policies: readonly PolicyTraffic[];
  readonly drops: readonly OtherDrops[];
}

/** `isKnown`: only these policies count. */
export function sumTraffic(counts: readonly RuleCount[], isKnown: (policy: string) => boolean): SummedTraffic {
  const policies = new Map<string, PolicyTraffic>();
  const drops = new Map<string, OtherDrops>();
  for (const { comment = "", verdict = "", packets, bytes } of counts) {
    const origin = readRuleComment(comment);
    const action = ACTION[verdict];
    if (action === undefined) continue;
    if (origin.kind === "policy") {
      const { policy, direction } = origin;
      if (isKnown(policy))
        put(policies, `${policy} ${direction} ${action}`, { policy, direction, action, packets, bytes });
    } else if (action === "deny") {
      const reason = originWords(origin);
      put(drops, reason, { reason, packets, bytes });
    }
  }
  return { policies: [...policies.values()], drops: [...drops.values()] };
}

function put<Row extends Traffic>(sums: Map<string, Row>, key: string, row: Row): void {
  const before = sums.get(key);
  const sum = { packets: row.packets + (before?.packets ?? 0), bytes: row.bytes + (before?.bytes ?? 0) };
  sums.set(key, { ...row, ...sum });
}
