/**
 * IPAMBlock: the owners of the addresses of a block.
 *
 * Read and written on every ADD, hence by hand and not with a schema. Checks the
 * structure; `ipam check` of the admin tool checks that the content is
 * consistent.
 */
import { counted } from "../counted.ts";
import { PluginError } from "../errors.ts";
import { blockSize } from "../ip/block.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { quoteSequenceNumbers, readSequenceNumber } from "./sequence-numbers.ts";
import { isObject } from "./shape.ts";
import { parseStored } from "./stored.ts";

/** The secondary attribute with the node that an address was assigned on. */
export const NODE_ATTRIBUTE = "node";
/** Those that say who an address was assigned to. */
export const NAMESPACE_ATTRIBUTE = "namespace";
export const NETWORK_ATTRIBUTE = "network";
/** With the network, tells apart what shares a handle. */
export const INTERFACE_ATTRIBUTE = "interface";

/** The owner of an allocation; several ordinals may share one. */
export interface BlockAttribute {
  readonly handleId?: string;
  readonly secondary: Readonly<Record<string, string>>;
}

/** When an address was released, and whose it was: the namespace of a pod, or else the network of a container. */
export interface Release {
  /** Seconds since 1970, by the clock of the datastore, or else of the node that released it. */
  readonly at: number;
  readonly namespace?: string;
  readonly network?: string;
}

export interface IPAMBlock {
  readonly cidr: Prefix;
  /** `host:<node>`; absent if the block does not belong to a node. */
  readonly affinity?: string;
  /** For each ordinal the index of its attribute, or `undefined` if it is free. */
  readonly allocations: readonly (number | undefined)[];
  /** Free ordinals; the one that has been free for the longest time is first. */
  readonly unallocated: readonly number[];
  readonly attributes: readonly BlockAttribute[];
  /** Increases with every write. Above 2^53. */
  readonly sequenceNumber: bigint;
  /** For each ordinal the sequence number of its allocation. */
  readonly sequenceNumberForAllocation: Readonly<Record<number, bigint>>;
  /** For each ordinal that was released not long ago, its release. Never empty. */
  readonly released?: Readonly<Record<number, Release>>;
  /** For how long released addresses rest, by the setting that the last assignment knew; absent: no setting. */
  readonly cooldownSeconds?: number;
  readonly deleted: boolean;
}

export function readBlock(text: string, key: string): IPAMBlock {
  return readBlockObject(parseStored(quoteSequenceNumbers(text), "IPAMBlock", key), key);
}

/** Like `readBlock`, for an object parsed from text whose sequence numbers were quoted. */
export function readBlockObject(value: unknown, key: string): IPAMBlock {
  if (!isObject(value)) throw malformed(key, "it is not an object");

  const cidr = typeof value["cidr"] === "string" ? parsePrefix(value["cidr"]) : undefined;
  if (!cidr) throw malformed(key, `"cidr" is ${quoted(value["cidr"])}, not a CIDR`);
  const attributes = readAttributes(value["attributes"], key);
  const size = blockSize(cidr);
  const affinity = readAffinity(value, key);
  const released = readReleases(value["released"], size);
  return {
    cidr,
    ...(affinity === undefined ? {} : { affinity }),
    allocations: readAllocations(value["allocations"], { size, attributes: attributes.length, key }),
    unallocated: readUnallocated(value["unallocated"], size, key),
    attributes,
    sequenceNumber: readSequence(value["sequenceNumber"] ?? 0, "sequenceNumber", key),
    sequenceNumberForAllocation: readSequences(value["sequenceNumberForAllocation"], key),
    ...(released === undefined ? {} : { released }),
    ...(isPositive(value["cooldownSeconds"]) ? { cooldownSeconds: value["cooldownSeconds"] } : {}),
    deleted: value["deleted"] === true,
  };
}

/** The stored text; sequence numbers are plain numbers of any size. */
export function writeBlock(block: IPAMBlock): string {
  const { cidr, affinity, allocations, unallocated, attributes, released, cooldownSeconds, deleted } = block;
  // A free ordinal is written as null.
  const head = JSON.stringify({
    cidr: formatPrefix(cidr),
    affinity: affinity ?? null,
    allocations,
    unallocated,
    attributes: attributes.map(({ handleId, secondary }) => ({ handle_id: handleId ?? null, secondary })),
    // Left out if there is none, as JSON does it with what is undefined.
    released,
    cooldownSeconds,
    deleted,
  });
  const sequences = Object.entries(block.sequenceNumberForAllocation).map(
    ([ordinal, number]) => `"${ordinal}":${number}`,
  );
  const tail = `"sequenceNumber":${block.sequenceNumber},"sequenceNumberForAllocation":{${sequences.join(",")}}`;
  return `${head.slice(0, -1)},${tail}}`;
}

/** `host:<node>`, the affinity of a block that belongs to the node. */
export function hostAffinity(node: string): string {
  return `host:${node}`;
}

/** The node a block belongs to. */
export function affineNode({ affinity }: Pick<IPAMBlock, "affinity">): string | undefined {
  return affinity?.startsWith("host:") ? affinity.slice("host:".length) : undefined;
}

function readAffinity(value: Readonly<Record<string, unknown>>, key: string): string | undefined {
  const { affinity, hostAffinity: legacy } = value;
  if (typeof affinity === "string") return affinity;
  if (affinity !== undefined && affinity !== null) throw malformed(key, '"affinity" is not text');
  return typeof legacy === "string" ? hostAffinity(legacy) : undefined;
}

interface Bounds {
  readonly size: number;
  readonly attributes: number;
  readonly key: string;
}

function readAllocations(value: unknown, { size, attributes, key }: Bounds): (number | undefined)[] {
  if (!Array.isArray(value) || value.length !== size) throw malformed(key, `"allocations" is not a list of ${size}`);
  const allocations = new Array<number | undefined>(size);
  for (let ordinal = 0; ordinal < size; ordinal += 1) {
    const index: unknown = value[ordinal];
    if (index !== null && !isIndex(index, attributes)) {
      throw malformed(
        key,
        `"allocations[${ordinal}]" is ${quoted(index)}, but the block has ${counted(attributes, "attribute")}`,
      );
    }
    allocations[ordinal] = index ?? undefined;
  }
  return allocations;
}

function readUnallocated(value: unknown, size: number, key: string): number[] {
  // Go writes an empty list as null.
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw malformed(key, '"unallocated" is not a list');
  for (const ordinal of value) {
    if (!isIndex(ordinal, size))
      throw malformed(
        key,
        `"unallocated" contains ${quoted(ordinal)}, but the block has ${counted(size, "address", "addresses")}`,
      );
  }
  return value;
}

function readAttributes(value: unknown, key: string): BlockAttribute[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw malformed(key, '"attributes" is not a list');
  const attributes = new Array<BlockAttribute>(value.length);
  for (let index = 0; index < value.length; index += 1) attributes[index] = readAttribute(value[index], index, key);
  return attributes;
}

function readAttribute(value: unknown, index: number, key: string): BlockAttribute {
  if (!isObject(value)) throw malformed(key, `"attributes[${index}]" is not an object`);
  const handleId = value["handle_id"] ?? undefined;
  const secondary = value["secondary"] ?? {};
  if (!isTextMap(secondary))
    throw malformed(key, `"attributes[${index}].secondary" is not an object with string values`);
  if (handleId === undefined) return { secondary };
  if (typeof handleId !== "string") throw malformed(key, `"attributes[${index}].handle_id" is not a string`);
  return { handleId, secondary };
}

function readSequences(value: unknown, key: string): Record<number, bigint> {
  if (value === null || value === undefined) return {};
  if (!isObject(value)) throw malformed(key, '"sequenceNumberForAllocation" is not an object');
  const sequences: Record<number, bigint> = {};
  for (const ordinal in value) {
    if (!Number.isInteger(Number(ordinal)))
      throw malformed(key, `"sequenceNumberForAllocation" has the key "${ordinal}", which is not an ordinal`);
    sequences[Number(ordinal)] = readSequence(value[ordinal], `sequenceNumberForAllocation.${ordinal}`, key);
  }
  return sequences;
}

/** Only for a while, and only to prefer other addresses: an entry that makes no sense is dropped, and the block is readable. */
function readReleases(value: unknown, size: number): Record<number, Release> | undefined {
  if (!isObject(value)) return undefined;
  let releases: Record<number, Release> | undefined;
  for (const ordinal in value) {
    const entry = value[ordinal];
    if (!isIndex(Number(ordinal), size) || !isObject(entry) || !Number.isSafeInteger(entry["at"])) continue;
    const { at, namespace, network } = entry;
    releases ??= {};
    releases[Number(ordinal)] = {
      at: Number(at),
      ...(typeof namespace === "string" ? { namespace } : {}),
      ...(typeof network === "string" ? { network } : {}),
    };
  }
  return releases;
}

function readSequence(value: unknown, field: string, key: string): bigint {
  const number = readSequenceNumber(value);
  if (number === undefined) throw malformed(key, `"${field}" is ${quoted(value)}, not an exact whole number`);
  return number;
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function isIndex(value: unknown, limit: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < limit;
}

function isTextMap(value: unknown): value is Readonly<Record<string, string>> {
  if (!isObject(value)) return false;
  // Not Object.values().every(): in a new process that takes ten times as long as the loop.
  for (const name in value) if (typeof value[name] !== "string") return false;
  return true;
}

function malformed(key: string, reason: string): PluginError {
  return new PluginError("record-malformed", `Cannot read IPAMBlock at "${key}": ${reason}`);
}
