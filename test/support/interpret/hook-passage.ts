/** Where a packet is, and what rules can find out about it there. For tests. */
import type { Expression } from "../../../src/linux/nftables/expression.ts";
import type { Hook } from "../../../src/linux/nftables/ruleset.ts";
import type { PacketBytes } from "./packet-bytes.ts";

export interface HookPassage {
  readonly hook: Hook;
  readonly iifname?: string;
  readonly oifname?: string;
  /** The numbers of these interfaces; 0 if absent. */
  readonly iif?: number;
  readonly oif?: number;
  readonly packet: PacketBytes;
  /** What a rule loads that asks for a route. Without it, such a rule cannot be interpreted. */
  readonly fib?: (question: Extract<Expression, { kind: "fib" }>) => Uint8Array;
}
