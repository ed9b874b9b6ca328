/** How policies of the orchestrator are read, of whatever kind: an unknown field must not be ignored, it could be a criterion. Pure. */
import { identity } from "../identity.ts";
import { parseAddress, unmapAddress } from "../ip/address.ts";
import { formatPrefix, parseInterfaceAddress, prefixAround } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { Unconvertible } from "./orchestrator-selector.ts";
import { isObject } from "./shape.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** A term of our selectors. */
export const IS_POD = `${identity.labelPrefix}orchestrator == 'k8s'`;

/** Host bits have no meaning, as for the orchestrator. */
export function networkOf(cidr: unknown): string {
  const read = typeof cidr === "string" && parseAddress(cidr) === undefined ? parseInterfaceAddress(cidr) : undefined;
  if (read === undefined) throw new Unconvertible(`${quoted(cidr)} is not a CIDR`);
  // Packets of mapped addresses are IPv4 packets, which our rules do not compare with such a network.
  if (unmapAddress(read.address).family !== read.address.family) {
    throw new Unconvertible(`${quoted(cidr)} is an IPv4-mapped network`);
  }
  return formatPrefix(prefixAround(read.address, read.length));
}

export function joined(terms: readonly string[]): string {
  return terms.join(" && ");
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

export function listIn(fields: Fields, name: string): readonly unknown[] {
  const list = fields[name] ?? [];
  if (!Array.isArray(list)) throw new Unconvertible(`${name} is not a list`);
  return list;
}

/** Refuses fields that this release does not know. */
export function fieldsOf(value: unknown, what: string, known: readonly string[]): Fields {
  if (!isObject(value)) throw new Unconvertible(`${what} is not an object`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Unconvertible(`${what} has the unknown field ${quoted(unknown)}`);
  return value;
}

export function reasonOf(failure: unknown): string {
  if (failure instanceof Unconvertible) return failure.message;
  throw failure;
}
