/**
 * The keys of all records in the datastore, and the record that a key refers to.
 *
 *   <root>/ipam/v2/config
 *   <root>/ipam/v2/assignment/ipv4/block/10.0.0.0-26
 *   <root>/ipam/v2/host/<node>/ipv4/block/10.0.0.0-26
 *   <root>/ipam/v2/borrowed/<node>/ipv4/block/10.0.0.0-26
 *   <root>/ipam/v2/handle/<handle>
 *   <root>/resources/<api version>/<api group>/<plural>/[<namespace>/]<name>
 *
 * Names appear in keys unchanged, except the slash (`%2F`) and, so that this is
 * reversible, the percent sign (`%25`). Root and API group are arguments of
 * `keysUnder()`: an upgrade reads another product's tree by the same rules. The
 * key functions that this file exports are those of this product.
 */
import { type GroupVersion, identity, PRODUCT_API } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../ip/prefix.ts";

export type KeyParts =
  | { readonly kind: "ipam-configuration" }
  | { readonly kind: "block"; readonly cidr: Prefix }
  | { readonly kind: "affinity"; readonly node: string; readonly cidr: Prefix }
  /** The node has, or had, addresses in a block that is not its own. */
  | { readonly kind: "borrowed"; readonly node: string; readonly cidr: Prefix }
  | { readonly kind: "handle"; readonly handleId: string }
  | {
      readonly kind: "resource";
      readonly api: GroupVersion;
      readonly plural: string;
      readonly namespace?: string;
      readonly name: string;
    };

export interface ResourceName {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** The keys of one product's tree. */
export interface Keys extends IpamKeys, ResourceKeys {
  /** All records of the product have this prefix. */
  readonly rootPrefix: string;
  /** The record that the key refers to, or `undefined` if it is not a key of this tree. */
  readonly parseKey: (key: string) => KeyParts | undefined;
}

interface IpamKeys {
  readonly ipamConfigurationKey: string;
  readonly blockKey: (cidr: Prefix) => string;
  /** All blocks of a family. */
  readonly blocksPrefix: (family: Family) => string;
  readonly affinityKey: (node: string, cidr: Prefix) => string;
  /** All affinities of a node, of one family or of both. */
  readonly affinitiesPrefix: (node: string, family?: Family) => string;
  /** All affinities of all nodes. */
  readonly allAffinitiesPrefix: string;
  readonly borrowedKey: (node: string, cidr: Prefix) => string;
  /** The same for all nodes. */
  readonly allBorrowedPrefix: string;
  /** All blocks that the node borrowed from. */
  readonly borrowedPrefix: (node: string) => string;
  readonly handleKey: (handleId: string) => string;
  /** Handles that begin with this text: `net.` finds those of network "net". */
  readonly handlesPrefix: (beginning: string) => string;
  readonly allHandlesPrefix: string;
}

/** `api`: for a kind in another group than the tree's own. */
interface ResourceKeys {
  readonly resourceKey: (plural: string, name: ResourceName, api?: GroupVersion) => string;
  /** All resources of a kind, or those of one namespace. */
  readonly resourcesPrefix: (plural: string, namespace?: string, api?: GroupVersion) => string;
}

/** `ownApi`: the API group and version of the product's own kinds. */
export function keysUnder(root: string, ownApi: GroupVersion): Keys {
  const ipam = `${root}/ipam/v2`;
  const resources = `${root}/resources`;
  const ipamKeys = ipamKeysUnder(ipam);
  return {
    ...ipamKeys,
    ...resourceKeysUnder(resources, ownApi),
    rootPrefix: `${root}/`,
    parseKey(key) {
      if (key === ipamKeys.ipamConfigurationKey) return { kind: "ipam-configuration" };
      if (key.startsWith(`${resources}/`)) return parseResourceKey(key.slice(resources.length + 1).split("/"));
      if (key.startsWith(`${ipam}/`)) return parseIpamKey(key.slice(ipam.length + 1).split("/"));
      return undefined;
    },
  };
}

function ipamKeysUnder(ipam: string): IpamKeys {
  const allAffinitiesPrefix = `${ipam}/host/`;
  const allHandlesPrefix = `${ipam}/handle/`;
  const blocksPrefix = (family: Family) => `${ipam}/assignment/ipv${family}/block/`;
  const affinitiesPrefix = (node: string, family?: Family) => {
    const host = `${allAffinitiesPrefix}${escapeSegment(node)}/`;
    return family === undefined ? host : `${host}ipv${family}/block/`;
  };
  const allBorrowedPrefix = `${ipam}/borrowed/`;
  const borrowedPrefix = (node: string) => `${allBorrowedPrefix}${escapeSegment(node)}/`;
  const handlesPrefix = (beginning: string) => `${allHandlesPrefix}${escapeSegment(beginning)}`;
  return {
    ipamConfigurationKey: `${ipam}/config`,
    blockKey: (cidr) => `${blocksPrefix(cidr.network.family)}${cidrSegment(cidr)}`,
    blocksPrefix,
    affinityKey: (node, cidr) => `${affinitiesPrefix(node, cidr.network.family)}${cidrSegment(cidr)}`,
    affinitiesPrefix,
    allAffinitiesPrefix,
    borrowedKey: (node, cidr) => `${borrowedPrefix(node)}ipv${cidr.network.family}/block/${cidrSegment(cidr)}`,
    allBorrowedPrefix,
    borrowedPrefix,
    handleKey: handlesPrefix,
    handlesPrefix,
    allHandlesPrefix,
  };
}

function resourceKeysUnder(resources: string, ownApi: GroupVersion): ResourceKeys {
  const resourcesPrefix: ResourceKeys["resourcesPrefix"] = (plural, namespace, { group, version } = ownApi) => {
    const all = `${resources}/${version}/${group}/${plural}/`;
    return namespace === undefined ? all : `${all}${escapeSegment(namespace)}/`;
  };
  return {
    resourcesPrefix,
    resourceKey: (plural, { name, namespace }, api) =>
      `${resourcesPrefix(plural, namespace, api)}${escapeSegment(name)}`,
  };
}

function parseResourceKey([version, group, plural, ...names]: readonly string[]): KeyParts | undefined {
  const [first, second, ...rest] = names.map(unescapeSegment);
  if (!version || !group || !plural || !first || second === "" || rest.length > 0) return undefined;
  const of = { kind: "resource", api: { group, version }, plural } as const;
  return second === undefined ? { ...of, name: first } : { ...of, namespace: first, name: second };
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
  if (!node || (section !== "host" && section !== "borrowed")) return undefined;
  const cidr = parseBlockSegments(place);
  return cidr && { kind: section === "host" ? "affinity" : "borrowed", node: unescapeSegment(node), cidr };
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

/** The keys of this product. */
export const PRODUCT_KEYS: Keys = keysUnder(identity.etcdRoot, PRODUCT_API);

export const {
  rootPrefix: ROOT_PREFIX,
  ipamConfigurationKey: IPAM_CONFIGURATION_KEY,
  blockKey,
  blocksPrefix,
  affinityKey,
  affinitiesPrefix,
  allAffinitiesPrefix: ALL_AFFINITIES_PREFIX,
  borrowedKey,
  allBorrowedPrefix: ALL_BORROWED_PREFIX,
  borrowedPrefix,
  handleKey,
  handlesPrefix,
  allHandlesPrefix: HANDLES_PREFIX,
  resourceKey,
  resourcesPrefix,
  parseKey,
} = PRODUCT_KEYS;

/** The only object of its kind. */
export const CLUSTER_INFORMATION_KEY: string = resourceKey("clusterinformations", { name: "default" });

/** The name in the key of a resource of this product; the key itself if it is another one. */
export function nameInKey(key: string): string {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.name : key;
}

/** `NAMESPACE/NAME`, or `NAME` of a resource without a namespace. */
export function titleInKey(key: string): string {
  const parts = parseKey(key);
  if (parts?.kind !== "resource") return key;
  return parts.namespace === undefined ? parts.name : `${parts.namespace}/${parts.name}`;
}
