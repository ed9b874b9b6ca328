/** What the rules ask about a request, looked up once for all rules. */

import type { NormalRequest } from "../../http/http-match.ts";
import type { Address } from "../../ip/address.ts";
import type { SetNames } from "./set-memberships.ts";

export interface RequestFacts {
  readonly source: PeerFacts;
  /** The pod. */
  readonly destination: PeerFacts;
  /** The sets with the identity of the client. Absent: it did not present a certificate. */
  readonly identitySets?: SetNames | undefined;
  /** Absent: the connection is not HTTP. */
  readonly http?: NormalRequest | undefined;
}

export interface PeerFacts {
  readonly address: Address;
  readonly port: number | undefined;
  /** The sets with the address, or with the address and the port. */
  readonly sets: readonly SetNames[];
}
