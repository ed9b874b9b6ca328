/** The first packet of a connection, as the judge sees it. */
import type { Address } from "../../ip/address.ts";

export interface Packet {
  readonly source: Address;
  readonly destination: Address;
  /** IP protocol number. */
  readonly protocol: number;
  /** Of TCP, UDP and SCTP. */
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  /** Of ICMP and ICMPv6. */
  readonly icmp?: { readonly type: number; readonly code: number };
  /** The packet before its destination was rewritten, for example by a host port. Absent: it is not rewritten. */
  readonly beforeNat?: Packet;
}
