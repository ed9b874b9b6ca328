/** Addresses and prefixes from text that is known to be valid. */
import { type Address, parseAddress } from "../../src/ip/address.ts";
import { type Prefix, parsePrefix } from "../../src/ip/prefix.ts";

export function address(text: string): Address {
  return parseAddress(text) ?? fail(text);
}

export function prefix(text: string): Prefix {
  return parsePrefix(text) ?? fail(text);
}

function fail(text: string): never {
  throw new Error(`the test itself is wrong: ${text}`);
}
