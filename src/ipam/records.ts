/**
 * Converts entries of the datastore into the allocator's types, and its decisions
 * into changes. The only file of this folder that knows how records are stored.
 */
import type { Change, Entry, Rewrite } from "../datastore/datastore.ts";
import { readEach, type Unreadable } from "../datastore/read-each.ts";
import { PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import { type Prefix, parsePrefix } from "../ip/prefix.ts";
import { readAffinity, writeAffinity } from "../model/block-affinity.ts";
import { type IPAMBlock, readBlock, writeBlock } from "../model/ipam-block.ts";
import type { IPAMConfiguration } from "../model/ipam-configuration.ts";
import { readHandle, writeHandle } from "../model/ipam-handle.ts";
import { affinityKey, blockKey, borrowedKey, handleKey, type Keys, PRODUCT_KEYS } from "../model/keys.ts";
import {
  readStoredAddressList,
  readStoredConfiguration,
  readStoredNode,
  readStoredPool,
  readStoredReservation,
  type StoredNode,
} from "../model/stored-resources.ts";
import { parseSelector } from "../selector/parse.ts";
import { selects } from "../selector/selector.ts";
import { markOverlapping } from "./overlapping-pools.ts";
import type { Pool, SelectedNamespaces } from "./pools.ts";

/** A claim of this host on a block. */
export interface HostAffinity {
  readonly cidr: Prefix;
  readonly state: "confirmed" | "pending" | "pendingDeletion";
  readonly key: string;
  readonly revision: string;
}

export interface StoredHandle {
  /** Block CIDR -> number of addresses. */
  readonly blocks: Readonly<Record<string, number>>;
  readonly revision: string;
}

export type Configuration = IPAMConfiguration["spec"];

/** The meaning of `maxBlocksPerHost: 0`. */
const USUAL_BLOCKS_PER_HOST = 20;

export const DEFAULT_CONFIGURATION: Configuration = withLimit({
  strictAffinity: false,
  autoAllocateBlocks: true,
  maxBlocksPerHost: 0,
});

export function decodePool(entry: Entry): Pool {
  const { blockSize, namespaceSelector, ...pool } = readStoredPool(entry.value, entry.key);
  return {
    ...pool,
    blockLength: blockSize,
    selects: matcherOf(pool.nodeSelector),
    ...(namespaceSelector === undefined ? {} : { namespaces: labelledBy(namespaceSelector) }),
    key: entry.key,
    revision: entry.revision,
  };
}

/** A selector that cannot be parsed, which an API server without validation rules accepts, selects nothing. */
function matcherOf(selector: string): (labels: Readonly<Record<string, string>>) => boolean {
  const parsed = parseSelector(selector);
  return (labels) => parsed.ok && selects(parsed.selector, labels);
}

function labelledBy(selector: string): SelectedNamespaces {
  return { selector, selects: matcherOf(selector) };
}

export interface DecodedPools {
  readonly pools: readonly Pool[];
  /** An API server without validation rules accepts any CIDR: such a pool must not stop the others. */
  readonly unreadable: readonly Unreadable[];
}

/** All pools that there are: see overlapping-pools.ts. */
export function decodePools(entries: readonly Entry[], decode = decodePool): DecodedPools {
  const { readable, unreadable } = readEach(entries, decode);
  return { pools: markOverlapping(readable), unreadable };
}

export function decodeReservation(entry: Entry): readonly Prefix[] {
  return readStoredReservation(entry.value, entry.key);
}

/** An IPAddressList. */
export interface AddressList {
  /** In their order. */
  readonly addresses: readonly Address[];
  /** Absent: of all namespaces, and of containers without a pod. */
  readonly namespaces?: SelectedNamespaces;
  readonly key: string;
  readonly revision: string;
}

export function decodeAddressList({ key, value, revision }: Entry): AddressList {
  const { addresses, namespaceSelector } = readStoredAddressList(value, key);
  const namespaces = namespaceSelector === "all()" ? {} : { namespaces: labelledBy(namespaceSelector) };
  return { addresses, ...namespaces, key, revision };
}

export function decodeConfiguration(entry: Entry): Configuration {
  return withLimit(readStoredConfiguration(entry.value, entry.key));
}

export function decodeNode(entry: Entry): StoredNode {
  return readStoredNode(entry.value, entry.key);
}

/** `undefined` for an entry below a host's key that is not an affinity. */
export function decodeAffinity(entry: Entry, keys: Keys = PRODUCT_KEYS): HostAffinity | undefined {
  const parts = keys.parseKey(entry.key);
  if (parts?.kind !== "affinity") return undefined;
  const { cidr, state } = readAffinity(entry.value, entry.key, parts);
  return { cidr, state, key: entry.key, revision: entry.revision };
}

export function decodeHandle(entry: Entry): StoredHandle {
  return { blocks: readHandle(entry.value, entry.key, "").blocks, revision: entry.revision };
}

export function decodeBlock(entry: Entry): IPAMBlock {
  return readBlock(entry.value, entry.key);
}

export function requirePrefix(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix) return prefix;
  throw new PluginError("record-malformed", `Cannot read an IPAMHandle: "${text}" is not a block`);
}

/** `revision`: of the block that was read; none for one that does not exist. */
export function blockChange(block: IPAMBlock, revision: string | undefined): Change {
  return written(blockKey(block.cidr), writeBlock(block), revision);
}

/** Writes the claim in this state. `revision`: of the claim that was read; none for one that does not exist. */
export function affinityChange(
  claim: { readonly node: string; readonly cidr: Prefix },
  state: HostAffinity["state"],
  revision: string | undefined,
): Change {
  return written(affinityKey(claim.node, claim.cidr), writeAffinity({ state, deleted: false }), revision);
}

/** Records that the node has addresses in a block that is not its own, so that a search for its addresses finds them. */
export function borrowingChange({ node, cidr }: { readonly node: string; readonly cidr: Prefix }): Change {
  return { kind: "put", key: borrowedKey(node, cidr), value: "{}" };
}

/** Writes the claim again that an earlier change of the same list wrote. */
export function affinityRewrite(
  claim: { readonly node: string; readonly cidr: Prefix },
  state: HostAffinity["state"],
): Rewrite {
  return { ...rewrite(affinityKey(claim.node, claim.cidr)), value: writeAffinity({ state, deleted: false }) };
}

export function blockRewrite(block: IPAMBlock): Rewrite {
  return { ...rewrite(blockKey(block.cidr)), value: writeBlock(block) };
}

export function handleRewrite(handle: string, blocks: Readonly<Record<string, number>>): Rewrite {
  return { ...rewrite(handleKey(handle)), value: writeHandle({ blocks, deleted: false }) };
}

/** Sets the counts of the handle; a handle without addresses is deleted. `node`: where the addresses are used. */
export function handleRecordChange(
  handle: string,
  blocks: Readonly<Record<string, number>>,
  { revision, node }: { readonly revision: string | undefined; readonly node?: string },
): readonly Change[] {
  const key = handleKey(handle);
  if (Object.keys(blocks).length === 0) return revision === undefined ? [] : [{ kind: "delete", key, revision }];
  const value = writeHandle({ blocks, deleted: false });
  const ofNode = node === undefined ? {} : { node };
  return [
    revision === undefined
      ? { kind: "create", key, value, ...ofNode }
      : { kind: "update", key, value, revision, ...ofNode },
  ];
}

function rewrite(key: string): Rewrite {
  return { kind: "rewrite", key, value: undefined };
}

function written(key: string, value: string, revision: string | undefined): Change {
  return revision === undefined ? { kind: "create", key, value } : { kind: "update", key, value, revision };
}

function withLimit(spec: Configuration): Configuration {
  return { ...spec, maxBlocksPerHost: spec.maxBlocksPerHost || USUAL_BLOCKS_PER_HOST };
}
