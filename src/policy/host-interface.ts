/** An interface of this host, as far as host endpoints depend on it. */
import type { Address } from "../ip/address.ts";

export interface HostInterface {
  readonly name: string;
  readonly addresses: readonly Address[];
}
