/** The members of the sets that a sidecar knows, as texts of the protocol. Pure. */
import { type Address, parseAddress } from "../../ip/address.ts";
import { type Prefix, parsePrefix } from "../../ip/prefix.ts";

export type SetMember =
  /** `10.0.0.1` */
  | { readonly kind: "address"; readonly address: Address }
  /** `10.0.0.0/24` */
  | { readonly kind: "network"; readonly prefix: Prefix }
  /** `10.0.0.1 6 80`: an address with a port of TCP, which is protocol 6. */
  | { readonly kind: "port"; readonly address: Address; readonly port: number }
  /** `NAMESPACE/ACCOUNT` */
  | { readonly kind: "identity"; readonly identity: string };

/** The name of a namespace has neither dots nor colons: no identity is also a network. */
const IDENTITY = /^[a-z0-9-]+\/[a-z0-9.-]+$/;
const PORT = /^(\S+) 6 (\d{1,5})$/;
const LAST_PORT = 65_535;

export function parseSetMember(text: string): SetMember | undefined {
  const address = parseAddress(text);
  if (address !== undefined) return { kind: "address", address };
  if (IDENTITY.test(text)) return { kind: "identity", identity: text };
  const prefix = parsePrefix(text);
  return prefix === undefined ? parsePortMember(text) : { kind: "network", prefix };
}

function parsePortMember(text: string): SetMember | undefined {
  const [, addressText = "", portText] = PORT.exec(text) ?? [];
  const address = parseAddress(addressText);
  const port = Number(portText);
  return address === undefined || port > LAST_PORT ? undefined : { kind: "port", address, port };
}
