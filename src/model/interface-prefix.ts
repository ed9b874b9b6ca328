/**
 * How the names of the interfaces of workloads begin, as NodeAgentConfiguration lists it: "veth,lxc". Interfaces of our own
 * plugin always count. Pure.
 */
import * as v from "valibot";
import { identity } from "../identity.ts";

/** The kernel's limit for a name is 15: a prefix of that length would be a whole name. */
export const PREFIX_LIST_PATTERN = /^ *[a-zA-Z0-9_.-]{1,14} *(, *[a-zA-Z0-9_.-]{1,14} *)*$/;
export const NOT_A_PREFIX_LIST =
  'is not a list of prefixes of interface names; use 1 to 14 letters, digits, "_", "." or "-" each, separated by commas, such as "veth" or "veth,lxc"';
/** How the name of the host's own loopback interface begins: without it a host does not work. */
export const LOOPBACK_PREFIXES: readonly string[] = ["l", "lo"];
export const IS_LOOPBACK_PREFIX = 'has a prefix of the host\'s own interface "lo"; use a longer one';

export const interfacePrefixField = v.pipe(
  v.string(),
  v.regex(PREFIX_LIST_PATTERN, NOT_A_PREFIX_LIST),
  v.check((text) => !listed(text).some((prefix) => LOOPBACK_PREFIXES.includes(prefix)), IS_LOOPBACK_PREFIX),
);

/** The prefixes in a field that was accepted, with our own; none is the beginning of another. */
export function workloadPrefixes(text: string): readonly string[] {
  const all = [...new Set([identity.interfacePrefix, ...listed(text)])];
  return all.filter((prefix) => !all.some((other) => other !== prefix && prefix.startsWith(other)));
}

export function hasPrefix(interfaceName: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => interfaceName.startsWith(prefix));
}

function listed(text: string): readonly string[] {
  return text.split(",").map((prefix) => prefix.trim());
}
