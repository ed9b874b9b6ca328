/** A request as the mesh's proxy describes it; a connection that is not HTTP has no `http`. */
import type { Address } from "../../ip/address.ts";

export interface IncomingRequest {
  readonly source: Address;
  readonly sourcePort?: number;
  /** What the certificate of the client says: `spiffe://TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT`. Absent: no certificate. */
  readonly principal?: string;
  readonly destinationPort: number;
  readonly http?: HttpAttributes;
}

export interface HttpAttributes {
  readonly method: string;
  /** As the client sent it, with its query. */
  readonly path: string;
}
