/** The first packet of a connection, as the judge sees it. */

import type { HttpAttributes } from "../../http/http-match.ts";
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
  /** It is not a packet but a request over the connection, which a sidecar decides about. */
  readonly request?: PacketRequest;
  /** The packet before its destination was rewritten, for example by a host port. Absent: it is not rewritten. */
  readonly beforeNat?: Packet;
}

export interface PacketRequest {
  /** Absent: the connection is not HTTP. */
  readonly http?: HttpAttributes;
  /** What the certificate of the client says. Absent: it has none. */
  readonly principal?: string;
  /** Of the sidecar; `*` for any. "cluster.local" if absent. */
  readonly trustDomain?: string;
}
