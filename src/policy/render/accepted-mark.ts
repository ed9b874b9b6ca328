/**
 * The bit of the packet mark which says that a preDNAT policy accepted the packet, so that no policy of the host
 * endpoint judges it again after its destination is rewritten. The only mark of the table: it is set and read only
 * while a preDNAT policy applies to an interface of this host.
 */
import type { Expression } from "../../linux/nftables/expression.ts";
import { hostNumber } from "../../linux/nftables/value.ts";

/** In the byte that other programs leave alone: kube-proxy, portmap and overlays of other vendors use lower bits. */
const ACCEPTED = 0x0100_0000;
const OTHER_BITS = 0xfeff_ffff;
const LOAD: Expression = { kind: "meta", key: "mark", to: 0 };

export const MARK_ACCEPTED: readonly Expression[] = [
  LOAD,
  { kind: "bitwise", from: 0, to: 0, mask: hostNumber(OTHER_BITS), flip: hostNumber(ACCEPTED) },
  { kind: "set-meta", key: "mark", from: 0 },
];

/** What comes out of a tunnel has the mark of the packet that it was in. */
export const UNMARK: readonly Expression[] = [
  LOAD,
  { kind: "bitwise", from: 0, to: 0, mask: hostNumber(OTHER_BITS), flip: hostNumber(0) },
  { kind: "set-meta", key: "mark", from: 0 },
];

export const IS_MARKED_ACCEPTED: readonly Expression[] = [
  LOAD,
  { kind: "bitwise", from: 0, to: 0, mask: hostNumber(ACCEPTED), flip: hostNumber(0) },
  { kind: "compare", operator: "equal", from: 0, value: hostNumber(ACCEPTED) },
];
