/**
 * Where everything lies in the datastore, and what lies at a key.
 *
 *   <root>/ipam/v2/config
 *   <root>/ipam/v2/assignment/ipv4/block/10.0.0.0-26
 *   <root>/ipam/v2/host/<node>/ipv4/block/10.0.0.0-26
 *   <root>/ipam/v2/handle/<handle>
 *   <root>/resources/v3/<api group>/<plural>/[<namespace>/]<name>
 *
 * Names stand in keys as they are, except the slash (`%2F`) and, so that this
 * can be undone, the percent sign (`%25`).
 */
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../ip/prefix.ts";

export type KeyParts =
  | { readonly kind: "ipam-configuration" }
  | { readonly kind: "block"; readonly cidr: Prefix }
  | { readonly kind: "affinity"; readonly node: string; readonly cidr: Prefix }
  | { readonly kind: "handle"; readonly handleId: string }
  | { readonly kind: "resource"; readonly plural: string; readonly namespace?: string; readonly name: string };

const IPAM = `${identity.etcdRoot}/ipam/v2`;
const RESOURCES = `${identity.etcdRoot}/resources/v3/${identity.apiGroup}`;

export const ROOT_PREFIX = `${identity.etcdRoot}/`;
export const IPAM_CONFIGURATION_KEY = `${IPAM}/config`;

export function blockKey(cidr: Prefix): string {
  return `${blocksPrefix(cidr.network.family)}${cidrSegment(cidr)}`;
}

/** All blocks of a family. */
export function blocksPrefix(family: Family): string {
  return `${IPAM}/assignment/ipv${family}/block/`;
}

export function affinityKey(node: string, cidr: Prefix): string {
  return `${affinitiesPrefix(node, cidr.network.family)}${cidrSegment(cidr)}`;
}

/** All affinities of a node, of one family or of both. */
export function affinitiesPrefix(node: string, family?: Family): string {
  const host = `${IPAM}/host/${escapeSegment(node)}/`;
  return family === undefined ? host : `${host}ipv${family}/block/`;
}

/** All affinities of all nodes. */
export const ALL_AFFINITIES_PREFIX = `${IPAM}/host/`;

export function handleKey(handleId: string): string {
  return `${HANDLES_PREFIX}${escapeSegment(handleId)}`;
}

/** Handles that begin with this text: `net.` finds those of network "net". */
export function handlesPrefix(beginning: string): string {
  return `${HANDLES_PREFIX}${escapeSegment(beginning)}`;
}

export const HANDLES_PREFIX = `${IPAM}/handle/`;

export interface ResourceName {
  readonly name: string;
  readonly namespace?: string | undefined;
}

export function resourceKey(plural: string, { name, namespace }: ResourceName): string {
  return `${resourcesPrefix(plural, namespace)}${escapeSegment(name)}`;
}

/** All resources of a kind, or those of one namespace. */
export function resourcesPrefix(plural: string, namespace?: string): string {
  const all = `${RESOURCES}/${plural}/`;
  return namespace === undefined ? all : `${all}${escapeSegment(namespace)}/`;
}

/** What lies at the key, or `undefined` when nothing of ours does. */
export function parseKey(key: string): KeyParts | undefined {
  if (key === IPAM_CONFIGURATION_KEY) return { kind: "ipam-configuration" };
  if (key.startsWith(`${RESOURCES}/`)) return parseResourceKey(key.slice(RESOURCES.length + 1).split("/"));
  if (key.startsWith(`${IPAM}/`)) return parseIpamKey(key.slice(IPAM.length + 1).split("/"));
  return undefined;
}

function parseResourceKey([plural, ...names]: readonly string[]): KeyParts | undefined {
  const [first, second, ...rest] = names.map(unescapeSegment);
  if (!plural || !first || second === "" || rest.length > 0) return undefined;
  return second === undefined
    ? { kind: "resource", plural, name: first }
    : { kind: "resource", plural, namespace: first, name: second };
}

function parseIpamKey([section, ...rest]: readonly string[]): KeyParts | undefined {
  if (section === "handle") {
    return rest.length === 1 && rest[0] ? { kind: "handle", handleId: unescapeSegment(rest[0]) } : undefined;
  }
  if (section === "assignment") {
    const cidr = parseBlockSegments(rest);
    return cidr && { kind: "block", cidr };
  }
  const [node, ...place] = rest;
  const cidr = section === "host" && node ? parseBlockSegments(place) : undefined;
  return cidr && node ? { kind: "affinity", node: unescapeSegment(node), cidr } : undefined;
}

function parseBlockSegments([family, word, segment, ...rest]: readonly string[]): Prefix | undefined {
  if (word !== "block" || segment === undefined || rest.length > 0) return undefined;
  const cidr = parsePrefix(segment.replace("-", "/"));
  return cidr && family === `ipv${cidr.network.family}` ? cidr : undefined;
}

function cidrSegment(cidr: Prefix): string {
  return formatPrefix(cidr).replace("/", "-");
}

function escapeSegment(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("/", "%2F");
}

function unescapeSegment(segment: string): string {
  return segment.replaceAll("%2F", "/").replaceAll("%25", "%");
}
