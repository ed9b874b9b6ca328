/**
 * Which sources a pod's interface may use beside the pod's own addresses, and how
 * what the kernel has differs from that. Pure, and independent of nftables: the
 * rendering is in guard-rules.ts.
 *
 * The kernel knows them by the index of the link. An index is never used again, so
 * what a removed link leaves behind permits nothing to the next pod of that name.
 */
import type { Family } from "../ip/address.ts";
import { mergedRanges } from "../ip/merged-ranges.ts";
import type { Prefix } from "../ip/prefix.ts";
import { type AddressRange, formatRange } from "../ip/range.ts";

export interface LinkSources {
  readonly linkIndex: number;
  readonly linkName: string;
  readonly prefixes: readonly Prefix[];
}

/** A range of sources that the link may use. */
export interface AllowedSource {
  readonly linkIndex: number;
  /** Only for readers of the table. */
  readonly linkName?: string;
  readonly range: AddressRange;
}

export interface SourceChanges {
  readonly removed: readonly AllowedSource[];
  readonly added: readonly AllowedSource[];
}

const FAMILIES: readonly Family[] = [4, 6];

export function sourcesOfLink({ linkIndex, linkName, prefixes }: LinkSources): readonly AllowedSource[] {
  return FAMILIES.flatMap((family) => mergedRanges(prefixes, family)).map((range) => ({ linkIndex, linkName, range }));
}

export function familiesOf(linkIndex: number, sources: readonly AllowedSource[]): readonly Family[] {
  return FAMILIES.filter((family) =>
    sources.some((each) => each.linkIndex === linkIndex && each.range.first.family === family),
  );
}

/** From what the kernel has to exactly what these links may use. Other links keep theirs. */
export function changesForLinks(present: readonly AllowedSource[], wanted: readonly LinkSources[]): SourceChanges {
  const links = new Set(wanted.map(({ linkIndex }) => linkIndex));
  const all = wanted.flatMap(sourcesOfLink);
  const before = present.filter(({ linkIndex }) => links.has(linkIndex));
  return { removed: without(before, all), added: without(all, before) };
}

function without(sources: readonly AllowedSource[], others: readonly AllowedSource[]): readonly AllowedSource[] {
  const known = new Set(others.map(nameOf));
  return sources.filter((source) => !known.has(nameOf(source)));
}

function nameOf({ linkIndex, range }: AllowedSource): string {
  return `${linkIndex} ${formatRange(range)}`;
}
