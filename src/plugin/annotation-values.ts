/** The values of annotations: each decoder returns the value, or the rule that the text violates. Pure. */
import { isPoolReference } from "../config/pool-reference.ts";
import { type Address, type Family, formatAddress, isSameAddress, parseAddress, unmapAddress } from "../ip/address.ts";
import { parseMac } from "../ip/mac.ts";
import {
  isSamePrefix,
  type Prefix,
  parseInterfaceAddress,
  parsePrefix,
  prefixAround,
  prefixContains,
} from "../ip/prefix.ts";
import { isDuration, wholeSecondsOf } from "../model/duration.ts";
import { LONGEST_NAME } from "../model/longest-name.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { macProblem } from "./requested-mac.ts";

export type Decoded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly rule: string };

/** For messages it is shown as it is written. */
export interface WrittenDuration {
  readonly text: string;
  readonly seconds: number;
}

/** At most one address of each family. */
export function decodePodAddresses(text: string): Decoded<readonly Address[]> {
  const decoded = decodeAddresses(text);
  if (!decoded.ok) return decoded;
  for (const family of [4, 6]) {
    const [first, second] = decoded.value.filter((address) => address.family === family);
    if (first === undefined || second === undefined) continue;
    const both = `"${formatAddress(first)}" and "${formatAddress(second)}"`;
    return broken(`it has two IPv${family} addresses, ${both}; only one IPv4, one IPv6, or one of each is allowed`);
  }
  return decoded;
}

/** Each once. */
export function decodeAddresses(text: string): Decoded<readonly Address[]> {
  const list = decodeList(text, '["10.0.0.5"] or ["10.0.0.5", "fd00::5"]');
  if (!list.ok) return list;
  const addresses: Address[] = [];
  for (const each of list.value) {
    const parsed = parseAddress(each);
    if (parsed === undefined) return broken(`${quoted(each)} is not an IP address such as 10.0.0.5 or fd00::5`);
    const address = unmapAddress(parsed);
    const kind = unusableKind(address);
    if (kind !== undefined) return broken(`${quoted(each)} is ${kind}, which a pod cannot have`);
    if (!addresses.some((other) => isSameAddress(other, address))) addresses.push(address);
  }
  return { ok: true, value: addresses };
}

/** Whether the list exists is checked when the datastore is read. */
export function decodeListName(text: string): Decoded<string> {
  if (text.length <= LONGEST_NAME && LIST_NAME.test(text)) return { ok: true, value: text };
  return broken("it is not the name of an IPAddressList; write one name, such as web, not in a JSON array");
}

const LIST_NAME = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

/** In the order of the families, each once. */
export function decodeFamilies(text: string): Decoded<readonly Family[]> {
  const list = decodeList(text, FAMILIES_EXAMPLE);
  if (!list.ok) return list;
  const unknown = list.value.find((each) => !Object.hasOwn(FAMILY_NAMES, each));
  if (unknown !== undefined) return broken(`${quoted(unknown)} is not a family; write ${FAMILIES_EXAMPLE}`);
  return { ok: true, value: ([4, 6] as const).filter((family) => list.value.includes(`IPv${family}`)) };
}

const FAMILY_NAMES = { IPv4: 4, IPv6: 6 } as const;
const FAMILIES_EXAMPLE = '["IPv4"], ["IPv6"] or ["IPv4", "IPv6"]';

/** Whether the pools exist is checked when the datastore is read. */
export function decodePools(text: string, family: Family): Decoded<readonly string[]> {
  const example = family === 4 ? '["blue"] or ["10.0.0.0/16"]' : '["blue6"] or ["fd00::/64"]';
  const list = decodeList(text, example);
  if (!list.ok) return list;
  const wrong = list.value.find((each) => !isPoolReference(each, family));
  if (wrong === undefined) return list;
  return broken(`${quoted(wrong)} is neither the name of a pool nor the CIDR of an IPv${family} pool`);
}

/** Each once, in the order of the list. A CIDR with host bits means its network. */
export function decodePrefixes(text: string): Decoded<readonly Prefix[]> {
  const list = decodeList(text, '["198.51.100.0/24"] or ["198.51.100.0/24", "2001:db8::/64"]');
  if (!list.ok) return list;
  const prefixes: Prefix[] = [];
  for (const each of list.value) {
    const read = parseInterfaceAddress(each);
    if (read === undefined) {
      return broken(`${quoted(each)} is not a CIDR such as 198.51.100.0/24, 198.51.100.7/32 or 2001:db8::/64`);
    }
    if (unmapAddress(read.address).family !== read.address.family) {
      return broken(`${quoted(each)} is an IPv4 network in the notation of IPv6; write it as IPv4`);
    }
    const prefix = prefixAround(read.address, read.length);
    if (!prefixes.some((other) => isSamePrefix(other, prefix))) prefixes.push(prefix);
  }
  return { ok: true, value: prefixes };
}

/** No more values than the datastore keeps. */
export function atMost<Value>(most: number, decoded: Decoded<readonly Value[]>): Decoded<readonly Value[]> {
  if (!decoded.ok || decoded.value.length <= most) return decoded;
  const { length } = decoded.value;
  return broken(`it has ${length} different values; at most ${most} are allowed: remove ${length - most} of them`);
}

export function decodeMac(text: string): Decoded<Uint8Array> {
  const mac = parseMac(text);
  if (mac === undefined) return broken("it is not a MAC address such as 02:42:ac:11:00:02");
  const problem = macProblem(mac);
  return problem === undefined ? { ok: true, value: mac } : broken(problem);
}

/** Nothing else is taken for one of the two. */
export function decodeFlag(text: string): Decoded<boolean> {
  if (text === "true" || text === "false") return { ok: true, value: text === "true" };
  return broken('it is neither "true" nor "false"');
}

export function decodeDuration(text: string): Decoded<WrittenDuration> {
  if (isDuration(text)) return { ok: true, value: { text, seconds: wholeSecondsOf(text) } };
  return broken('it is not a duration such as "72h" or "30m"');
}

/** A JSON array of at least one string. */
function decodeList(text: string, example: string): Decoded<readonly string[]> {
  const value = parsed(text);
  if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) {
    return broken(`it is not a JSON array of strings, such as ${example}`);
  }
  if (value.length === 0) return broken(`the list is empty; write ${example}, or remove the annotation`);
  return { ok: true, value };
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const UNUSABLE: readonly (readonly [cidr: string, kind: string])[] = [
  ["0.0.0.0/8", "an address of no network"],
  ["127.0.0.0/8", "a loopback address"],
  ["169.254.1.1/32", "the gateway of every pod"],
  ["224.0.0.0/4", "a multicast address"],
  ["255.255.255.255/32", "the broadcast address"],
  ["::/128", "the unspecified address"],
  ["::1/128", "the loopback address"],
  ["fe80::/10", "a link-local address"],
  ["ff00::/8", "a multicast address"],
];

function unusableKind(address: Address): string | undefined {
  return UNUSABLE.find(([cidr]) => covers(parsePrefix(cidr), address))?.[1];
}

function covers(prefix: Prefix | undefined, address: Address): boolean {
  return prefix !== undefined && prefix.network.family === address.family && prefixContains(prefix, address);
}

function broken(rule: string): { readonly ok: false; readonly rule: string } {
  return { ok: false, rule };
}
