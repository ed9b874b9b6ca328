/**
 * Compares what is stored with what should be: the records of IPAM entry by entry, resources by their content. Pure.
 */
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import { type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { parseKey } from "../../model/keys.ts";
import { PUBLIC_KINDS } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { FORMER_UID } from "../former-names.ts";
import type { CopiedRecord } from "./conversion.ts";

export type Difference =
  | { readonly kind: "missing"; readonly wanted: CopiedRecord }
  /** `lines`: what differs. `isCopy`: it was copied by an upgrade, and is not somebody else's. */
  | {
      readonly kind: "different";
      readonly wanted: CopiedRecord;
      readonly present: Entry;
      readonly lines: readonly string[];
      readonly isCopy: boolean;
    }
  /** A record of IPAM that should not be there. */
  | { readonly kind: "surplus"; readonly present: Entry };

/** `present`: by key. Other resources than the wanted ones may exist; other records of IPAM may not. */
export function compareRecords(
  wanted: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly Difference[] {
  const keys = new Set(wanted.map(({ key }) => key));
  const surplus = [...present.values()].filter(({ key }) => isIpam(key) && !keys.has(key));
  return [
    ...wanted.flatMap((record): Difference[] => {
      const found = present.get(record.key);
      if (found === undefined) return [{ kind: "missing", wanted: record }];
      const lines = isIpam(record.key) ? ipamDifferences(record, found) : resourceDifferences(record, found);
      if (lines.length === 0) return [];
      return [
        { kind: "different", wanted: record, present: found, lines, isCopy: isIpam(record.key) || isCopy(found) },
      ];
    }),
    ...surplus.map((entry): Difference => ({ kind: "surplus", present: entry })),
  ];
}

export function describeDifference(difference: Difference): string {
  switch (difference.kind) {
    case "missing":
      return `${difference.wanted.what} is not copied yet`;
    case "surplus":
      return `${quoted(difference.present.key)} has no counterpart in the former storage`;
    case "different":
      return `${difference.wanted.what} differs: ${difference.lines.join("; ")}`;
  }
}

export function isIpam(key: string): boolean {
  return parseKey(key)?.kind !== "resource";
}

/** Whether the resource was copied from the former storage. */
export function isCopy({ value }: Entry): boolean {
  const annotations = metadataIn(value)["annotations"];
  return isObject(annotations) && typeof annotations[FORMER_UID] === "string";
}

function ipamDifferences({ key, value, what }: CopiedRecord, present: Entry): readonly string[] {
  const kind = parseKey(key)?.kind;
  if (kind === "block") return blockDifferences(readBlock(value, what), readBlock(present.value, key));
  // That there is one says everything.
  if (kind === "borrowed") return [];
  return Bun.deepEquals(parseJson(value), parseJson(present.value)) ? [] : [`${present.value} instead of ${value}`];
}

const BLOCK_FIELDS = [
  ...(["affinity", "unallocated", "sequenceNumber", "sequenceNumberForAllocation", "attributes"] as const),
  ...(["released", "cooldownSeconds"] as const),
] as const;

/** Every address of the block, and what decides which one is assigned next. */
function blockDifferences(wanted: IPAMBlock, present: IPAMBlock): readonly string[] {
  const addresses = wanted.allocations.flatMap((_, ordinal) => {
    const [before, now] = [ownerAt(wanted, ordinal), ownerAt(present, ordinal)];
    return before === now ? [] : [`${formatAddress(addressAt(wanted, ordinal))} is ${now} instead of ${before}`];
  });
  if (addresses.length > 0) return addresses;
  const fields = BLOCK_FIELDS.filter((field) => !Bun.deepEquals(wanted[field], present[field]));
  return fields.map((field) => `"${field}" of ${formatPrefix(wanted.cidr)}`);
}

function ownerAt(block: IPAMBlock, ordinal: number): string {
  const attributes = attributesOf(block, ordinal);
  if (attributes === undefined) return "free";
  const names = Object.entries(attributes.secondary).toSorted(([left], [right]) => (left < right ? -1 : 1));
  const details = names.map(([name, value]) => `${name} ${quoted(value)}`).join(", ");
  return `of handle ${quoted(attributes.handleId ?? "")}${details === "" ? "" : ` (${details})`}`;
}

function resourceDifferences({ key, value }: CopiedRecord, present: Entry): readonly string[] {
  const wanted = resourceIn(key, value);
  let found: typeof wanted;
  try {
    found = resourceIn(key, present.value);
  } catch (failure) {
    if (failure instanceof PluginError) return [failure.message];
    throw failure;
  }
  const fields = (["spec", "labels"] as const).filter((field) => !Bun.deepEquals(wanted[field], found[field]));
  return fields.map((field) => `${field} ${JSON.stringify(found[field])} instead of ${JSON.stringify(wanted[field])}`);
}

/** With the defaults of the kind: the API may have added some. */
function resourceIn(key: string, value: string): { readonly spec: unknown; readonly labels: unknown } {
  const parts = parseKey(key);
  const kind = parts?.kind === "resource" ? PUBLIC_KINDS.find(({ plural }) => plural === parts.plural) : undefined;
  const { labels = {} } = metadataIn(value);
  return { spec: kind?.codec.read(value, key).spec, labels };
}

function metadataIn(value: string): Readonly<Record<string, unknown>> {
  const parsed = parseJson(value);
  const metadata = isObject(parsed) ? parsed["metadata"] : undefined;
  return isObject(metadata) ? metadata : {};
}
