/**
 * The instructions of a rule. They use registers: sixteen slots of four bytes,
 * numbered 0 to 15; a longer value occupies several consecutive slots.
 *
 *   { kind: "payload", base: "network", offset: 16, length: 4, to: 0 }      load the destination address
 *   { kind: "compare", operator: "equal", from: 0, value: … }              continue if it is equal
 *   { kind: "verdict", verdict: { kind: "drop" } }
 */
import type { NftElement, SetShape } from "./set.ts";
import type { Verdict } from "./verdict.ts";

export type Register = number;

/** A set that is part of one rule: `{ tcp, udp }`. */
export interface AnonymousSet extends SetShape {
  readonly elements: readonly NftElement[];
}

export const META_KEY = {
  length: 0,
  protocol: 1,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  skuid: 10,
  nftrace: 12,
  nfproto: 15,
  l4proto: 16,
} as const;

export const CT_KEY = { state: 0, direction: 1, status: 2, mark: 3, protocol: 10, label: 13 } as const;
export const PAYLOAD_BASE = { link: 0, network: 1, transport: 2 } as const;
export const COMPARISON = { equal: 0, different: 1, less: 2, lessOrEqual: 3, greater: 4, greaterOrEqual: 5 } as const;
export const FIB_RESULT = { oif: 1, oifname: 2, type: 3 } as const;
export const FIB_FLAG = { saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16, present: 32 } as const;
/** `icmpx`: ICMP or ICMPv6, whichever the packet's family has. */
export const REJECT_TYPE = { icmp: 0, "tcp reset": 1, icmpx: 2 } as const;
export const ICMPX_CODE = { adminProhibited: 3 } as const;
export const LIMIT_UNIT = { second: 1, minute: 60, hour: 3600, day: 86400 } as const;

export type Expression =
  | { readonly kind: "meta"; readonly key: keyof typeof META_KEY; readonly to: Register }
  | { readonly kind: "set-meta"; readonly key: "mark" | "nftrace"; readonly from: Register }
  | { readonly kind: "ct"; readonly key: keyof typeof CT_KEY; readonly to: Register }
  /**
   * `label`: adds the bits of 16 bytes to those that the connection has. A packet without a connection continues unchanged, as
   * does one whose connection is older than the first rule with a label: the kernel has no room for one there.
   */
  | { readonly kind: "set-ct"; readonly key: "mark" | "label"; readonly from: Register }
  | {
      readonly kind: "payload";
      readonly base: keyof typeof PAYLOAD_BASE;
      readonly offset: number;
      readonly length: number;
      readonly to: Register;
    }
  | {
      readonly kind: "compare";
      readonly operator: keyof typeof COMPARISON;
      readonly from: Register;
      readonly value: Uint8Array;
    }
  | {
      readonly kind: "range";
      readonly operator: "within" | "outside";
      readonly from: Register;
      readonly first: Uint8Array;
      readonly last: Uint8Array;
    }
  /** `(register & mask) ^ flip`. */
  | {
      readonly kind: "bitwise";
      readonly from: Register;
      readonly to: Register;
      readonly mask: Uint8Array;
      readonly flip: Uint8Array;
    }
  | {
      readonly kind: "lookup";
      /** The name of a set of the table, or an anonymous set of this rule. */
      readonly set: string | AnonymousSet;
      readonly from: Register;
      /** The register for a map's value; `verdict` for a verdict map. */
      readonly to?: Register | "verdict";
      /** Continue if the key is not in the set. */
      readonly isInverted?: boolean;
    }
  /** Removes the key from a set whose elements have a timeout. Succeeds if it is not there. */
  | { readonly kind: "remove-element"; readonly set: string; readonly from: Register }
  | { readonly kind: "immediate"; readonly to: Register; readonly value: Uint8Array }
  | { readonly kind: "verdict"; readonly verdict: Verdict }
  | {
      readonly kind: "nat";
      readonly type: "snat" | "dnat";
      readonly family: "ip" | "ip6";
      readonly address?: Register;
      readonly port?: Register;
    }
  | { readonly kind: "masquerade" }
  | {
      readonly kind: "fib";
      readonly result: keyof typeof FIB_RESULT;
      readonly by: readonly (keyof typeof FIB_FLAG)[];
      readonly to: Register;
    }
  /** Only when writing: what it begins with, by default 0. */
  | { readonly kind: "counter"; readonly packets?: number; readonly bytes?: number }
  /** With a group: to a netlink listener; otherwise to the kernel log. */
  | { readonly kind: "log"; readonly prefix: string; readonly group?: number; readonly level?: number }
  | {
      readonly kind: "limit";
      readonly rate: bigint;
      readonly per: keyof typeof LIMIT_UNIT;
      readonly burst: number;
    }
  | { readonly kind: "notrack" }
  /** Drops the packet and answers its sender. Only at input, forward and output, and in prerouting; `tcp reset`: 0 as code. */
  | { readonly kind: "reject"; readonly type: keyof typeof REJECT_TYPE; readonly code: number }
  /** Only when reading: a target of iptables, such as REJECT. */
  | { readonly kind: "target"; readonly name: string }
  /** Only when reading: an instruction that this program does not write. */
  | { readonly kind: "other"; readonly name: string };
