/**
 * Schemas of values that several kinds hold: addresses, prefixes, selectors.
 * Each message says what is wrong with the text and what to write instead.
 */
import * as v from "valibot";
import { formatAddress, parseAddress, unmapAddress } from "../ip/address.ts";
import { parseMac } from "../ip/mac.ts";
import {
  formatPrefix,
  hasHostBits,
  type InterfaceAddress,
  parseInterfaceAddress,
  parsePrefixOrAddress,
  prefixAround,
} from "../ip/prefix.ts";
import { formatSelectorError, parseSelector } from "../selector/parse.ts";

type Complaint = (text: string) => string | undefined;

/** A string about which `complain` has nothing to say. */
function textField(complain: Complaint) {
  return v.pipe(
    v.string(),
    v.check(
      (text) => complain(text) === undefined,
      (issue) => complain(issue.input) ?? "",
    ),
  );
}

export const prefixField = textField(complainOfPrefix);
export const addressField = textField((text) =>
  parseAddress(text) ? undefined : 'is not an IP address; write it like "10.0.0.1" or "fd00::1"',
);
export const prefixOrAddressField = textField((text) =>
  parsePrefixOrAddress(text) ? undefined : ((text.includes("/") ? complainOfPrefix(text) : undefined) ?? NOT_EITHER),
);
/** `10.0.0.5/26`, or a lone address. */
export const interfaceAddressField = textField((text) =>
  parseInterfaceAddress(text) || parseAddress(text) ? undefined : 'is not an address; write it like "10.0.0.5/24"',
);
export const macField = textField((text) =>
  parseMac(text) ? undefined : 'is not a MAC address; write it like "02:42:ac:11:00:02"',
);
export const selectorField = textField((text) => {
  const parsed = parseSelector(text);
  return parsed.ok ? undefined : `is not a selector, at ${formatSelectorError(parsed.error)}`;
});

const NOT_EITHER = 'is neither an IP address nor a CIDR; write it like "10.0.0.1" or "10.0.0.0/24"';

function complainOfPrefix(text: string): string | undefined {
  const read = parseInterfaceAddress(text);
  if (!read) return complainOfNoPrefix(text);
  if (read.address.family !== unmapAddress(read.address).family) {
    return `is an IPv4 network in IPv6 clothes; use ${suggestUnmapped(read)}`;
  }
  return hasHostBits(read)
    ? `has host bits; use "${formatPrefix(prefixAround(read.address, read.length))}"`
    : undefined;
}

function complainOfNoPrefix(text: string): string {
  const address = parseAddress(text);
  const example = address ? `${formatAddress(address)}/${address.family === 4 ? 32 : 128}` : "10.0.0.0/16";
  return `is not a CIDR; write it as address and length, like "${example}"`;
}

function suggestUnmapped({ address, length }: InterfaceAddress): string {
  return length >= 96 ? `"${formatPrefix(prefixAround(unmapAddress(address), length - 96))}"` : "an IPv4 CIDR";
}
