/** The bits of the packet mark that the table uses, in the byte that other programs leave alone: kube-proxy, portmap and overlays of other vendors use lower bits. */
import type { Expression } from "../../linux/nftables/expression.ts";
import { hostNumber } from "../../linux/nftables/value.ts";

interface MarkBit {
  readonly bit: number;
  readonly set: readonly Expression[];
  readonly clear: readonly Expression[];
  readonly isSet: readonly Expression[];
}

/**
 * A preDNAT policy accepted the packet, so that no policy of the host endpoint judges it again after its destination is
 * rewritten. It is set and read only while a preDNAT policy applies to an interface of this host. What comes out of a
 * tunnel has the mark of the packet that it was in.
 */
export const ACCEPTED = markBit(0x0100_0000);

/**
 * Only on hosts with IPVS: the packet came to this host, and a workload of this host sent it. Set before IPVS, and gone
 * after it or when what it sends on is judged.
 */
export const ARRIVED = markBit(0x0200_0000);
export const FROM_WORKLOAD = markBit(0x0400_0000);

/** Only while connections that policy denies are ended: a reset of one, or a packet of the agent that makes an idle end reply. */
export const RESETTING = markBit(0x0800_0000);

function markBit(bit: number): MarkBit {
  const load: Expression = { kind: "meta", key: "mark", to: 0 };
  const store: Expression = { kind: "set-meta", key: "mark", from: 0 };
  const others = hostNumber(~bit >>> 0);
  return {
    bit,
    set: [load, { kind: "bitwise", from: 0, to: 0, mask: others, flip: hostNumber(bit) }, store],
    clear: [load, { kind: "bitwise", from: 0, to: 0, mask: others, flip: hostNumber(0) }, store],
    isSet: [
      load,
      { kind: "bitwise", from: 0, to: 0, mask: hostNumber(bit), flip: hostNumber(0) },
      { kind: "compare", operator: "equal", from: 0, value: hostNumber(bit) },
    ],
  };
}
