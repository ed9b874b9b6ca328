/**
 * Schemas of values in several kinds: addresses, prefixes, selectors.
 * Each message says what is wrong with the text and what to use instead.
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
import { LONGEST_COOLDOWN_SECONDS } from "./cooldown.ts";

/** Returns what is wrong with the text, or `undefined` if it is valid. */
type Validation = (text: string) => string | undefined;

/** The rules of the CRDs have the same ones, with expressions for the values. */
export const ADDRESS_MESSAGES = {
  address: 'is not an IP address; use for example "10.0.0.1" or "fd00::1"',
  either: 'is neither an IP address nor a CIDR; use for example "10.0.0.1" or "10.0.0.0/24"',
  prefix: (example: string) => `is not a CIDR; use address and prefix length, for example "${example}"`,
  hostBits: (network: string) => `has host bits; use "${network}"`,
  single: 'is not a single IP address; use for example "10.0.0.1" or "fd00::1"',
  spelling: (canonical: string) => `is spelled unusually; use "${canonical}"`,
} as const;

export const cooldownField = v.pipe(
  v.number(),
  v.integer("must be a whole number; use seconds, 0 to 86400"),
  v.minValue(0, "is negative; use 0 to 86400 seconds"),
  v.maxValue(LONGEST_COOLDOWN_SECONDS, "is out of range; use 0 to 86400 seconds"),
);

function textField(problemOf: Validation) {
  return v.pipe(
    v.string(),
    v.check(
      (text) => problemOf(text) === undefined,
      (issue) => problemOf(issue.input) ?? "",
    ),
  );
}

export const prefixField = textField(prefixProblem);
export const addressField = textField((text) => (parseAddress(text) ? undefined : ADDRESS_MESSAGES.address));
/** In the one spelling of the address, so that texts differ if the addresses do. */
export const singleAddressField = textField((text) => {
  const address = parseAddress(text);
  if (address === undefined || unmapAddress(address).family !== address.family) return ADDRESS_MESSAGES.single;
  return text === formatAddress(address) ? undefined : ADDRESS_MESSAGES.spelling(formatAddress(address));
});
export const prefixOrAddressField = textField((text) =>
  parsePrefixOrAddress(text)
    ? undefined
    : ((text.includes("/") ? prefixProblem(text) : undefined) ?? ADDRESS_MESSAGES.either),
);
/** Packets of IPv4-mapped addresses are IPv4 packets: a mapped network would match none of them. */
export const packetNetworkField = textField((text) => {
  const prefix = parsePrefixOrAddress(text);
  if (prefix === undefined) return (text.includes("/") ? prefixProblem(text) : undefined) ?? ADDRESS_MESSAGES.either;
  return prefix.network.family === unmapAddress(prefix.network).family
    ? undefined
    : `is IPv4-mapped IPv6; use ${suggestUnmapped({ address: prefix.network, length: prefix.length })}`;
});
/** `10.0.0.5/26`, or an address without a prefix length. */
export const interfaceAddressField = textField((text) =>
  parseInterfaceAddress(text) || parseAddress(text) ? undefined : 'is not an address; use for example "10.0.0.5/24"',
);
export const macField = textField((text) =>
  parseMac(text) ? undefined : 'is not a MAC address; use for example "02:42:ac:11:00:02"',
);
export const selectorField = textField((text) => {
  const parsed = parseSelector(text);
  return parsed.ok ? undefined : `is not a valid selector: ${formatSelectorError(parsed.error)}`;
});

function prefixProblem(text: string): string | undefined {
  const read = parseInterfaceAddress(text);
  if (!read) return notPrefix(text);
  if (read.address.family !== unmapAddress(read.address).family) {
    return `is an IPv4-mapped IPv6 network; use ${suggestUnmapped(read)}`;
  }
  return hasHostBits(read)
    ? ADDRESS_MESSAGES.hostBits(formatPrefix(prefixAround(read.address, read.length)))
    : undefined;
}

function notPrefix(text: string): string {
  const address = parseAddress(text);
  const example = address ? `${formatAddress(address)}/${address.family === 4 ? 32 : 128}` : "10.0.0.0/16";
  return ADDRESS_MESSAGES.prefix(example);
}

function suggestUnmapped({ address, length }: InterfaceAddress): string {
  return length >= 96 ? `"${formatPrefix(prefixAround(unmapAddress(address), length - 96))}"` : "an IPv4 CIDR";
}
