/**
 * What must hold of all blocks, handles and affinities together.
 *
 * Pure; the address check of the admin tool and every test of the allocator
 * ask it. An empty result means: no address is held twice, none is lost, and
 * whatever a record says of another is true. On a datastore that commits one object
 * at a time (and with writers of other releases) a handle may name more than its
 * blocks hold, and a claim may be unconfirmed: that is unfinished, not corrupt.
 */
import { counted } from "../counted.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { comparePrefixes, formatPrefix, type Prefix, prefixContains, prefixesOverlap } from "../ip/prefix.ts";
import type { AffinityState } from "../model/block-affinity.ts";
import { affineNode, type IPAMBlock } from "../model/ipam-block.ts";
import { tunnelTitle } from "../model/tunnel-address.ts";
import { addressAt, attributesOf, isEmpty, ordinalsOf } from "./block.ts";
import { hasResting } from "./rest.ts";

export interface IpamRecords {
  readonly pools: readonly Prefix[];
  /** Pools that overlap an earlier one, and what it is; see overlapping-pools.ts. */
  readonly overlappingPools?: readonly { readonly name: string; readonly overlaps: string }[];
  /** IPAddressLists. */
  readonly lists?: readonly AddressListRecord[];
  readonly blocks: readonly IPAMBlock[];
  readonly handles: readonly { readonly handleId: string; readonly blocks: Readonly<Record<string, number>> }[];
  readonly affinities: readonly { readonly node: string; readonly cidr: Prefix; readonly state: AffinityState }[];
  /** Addresses rest until then. Absent: as long as their releases are recorded. */
  readonly now?: Date;
}

interface AddressListRecord {
  readonly name: string;
  readonly addresses: readonly Address[];
}

export type ProblemKind =
  /** Two pools share addresses: the later one is not used. */
  | "pools-overlap"
  /** A block contradicts itself. */
  | "block-inconsistent"
  /** Two blocks share addresses. */
  | "blocks-overlap"
  /** An address is held and no handle leads to it. */
  | "allocation-without-handle"
  /** A handle counts other than its blocks do. */
  | "handle-count-wrong"
  /** A handle names a block that does not exist. */
  | "handle-without-block"
  /** An address is held that lies in no pool. */
  | "allocation-outside-pools"
  /** A list names addresses that lie in no pool: nobody gets them. */
  | "list-outside-pools"
  /** A host claims a block that is another's, or nobody's. */
  | "affinity-stale"
  /** A host claims a block that does not exist. */
  | "affinity-without-block"
  /** A host claims a block that is its own, and the claim is not confirmed. */
  | "affinity-unconfirmed"
  /** A block names a host that does not claim it. */
  | "block-without-affinity"
  /** A block is empty and nobody's, and its addresses have rested. */
  | "block-abandoned";

/**
 * `unfinished`: somebody stopped half way, and the next one who passes finishes or undoes it; no address is in danger.
 * `corrupt`: no order of writes and no crash leaves this.
 */
export type Severity = "unfinished" | "corrupt";

export interface Problem {
  readonly kind: ProblemKind;
  readonly severity: Severity;
  readonly message: string;
  readonly pool?: string;
  readonly list?: string;
  readonly block?: string;
  readonly handle?: string;
  readonly address?: string;
  readonly node?: string;
}

export function findProblems(records: IpamRecords): readonly Problem[] {
  const handlesOf = handlesByBlock(records);
  return [
    ...(records.overlappingPools ?? []).map(poolProblem),
    ...(records.lists ?? []).flatMap((list) => listProblem(list, records.pools)),
    ...records.blocks.flatMap(findBlockProblems),
    ...overlapProblems(records.blocks),
    ...records.blocks.flatMap((block) => allocationProblems(block, records.pools, handlesOf)),
    ...handleProblems(records),
    ...affinityProblems(records),
  ];
}

function poolProblem({ name, overlaps }: { readonly name: string; readonly overlaps: string }): Problem {
  return { kind: "pools-overlap", severity: "corrupt", message: `Pool "${name}" is not used: ${overlaps}`, pool: name };
}

const SHOWN_ADDRESSES = 3;

/** Reserved ones are meant: a reservation keeps them for the list. */
function listProblem({ name, addresses }: AddressListRecord, pools: readonly Prefix[]): readonly Problem[] {
  const outside = addresses.filter((address) => !pools.some((pool) => prefixContains(pool, address)));
  if (outside.length === 0) return [];
  const shown = outside.slice(0, SHOWN_ADDRESSES).map(formatAddress).join(", ");
  const more = outside.length > SHOWN_ADDRESSES ? ` and ${outside.length - SHOWN_ADDRESSES} more` : "";
  const count = counted(outside.length, "address", "addresses");
  const message = `IPAddressList "${name}" has ${count} in no pool, which nobody gets: ${shown}${more}`;
  return [{ kind: "list-outside-pools", severity: "corrupt", message, list: name }];
}

/** What is wrong with a block, whatever the rest of the world says. */
export function findBlockProblems(block: IPAMBlock): readonly Problem[] {
  const name = formatPrefix(block.cidr);
  const problem = (text: string): Problem => ({
    kind: "block-inconsistent",
    severity: "corrupt",
    message: `Block ${name}: ${text}`,
    block: name,
  });
  const free = new Set(block.unallocated);
  const used = new Set(block.allocations.filter((index) => index !== undefined));
  const problems: Problem[] = [];

  if (free.size !== block.unallocated.length) problems.push(problem("an ordinal is free twice"));
  block.allocations.forEach((index, ordinal) => {
    if ((index === undefined) !== free.has(ordinal))
      problems.push(problem(`ordinal ${ordinal} is both or neither of free and held`));
    if (index !== undefined && !block.attributes[index]) problems.push(problem(`ordinal ${ordinal} has no attributes`));
    const sequence = block.sequenceNumberForAllocation[ordinal];
    if (sequence !== undefined && sequence >= block.sequenceNumber)
      problems.push(problem(`ordinal ${ordinal} is from the future`));
  });
  block.attributes.forEach((_, index) => {
    if (!used.has(index)) problems.push(problem(`attributes ${index} belong to no ordinal`));
  });
  return problems;
}

/** In this order the widest comes first, so whoever overlaps anything lies inside the last block that stands alone. */
function overlapProblems(blocks: readonly IPAMBlock[]): readonly Problem[] {
  const sorted = blocks.map((block) => block.cidr).sort(comparePrefixes);
  let around: Prefix | undefined;
  return sorted.flatMap((cidr): Problem[] => {
    if (around && prefixesOverlap(around, cidr)) {
      const message = `Blocks ${formatPrefix(around)} and ${formatPrefix(cidr)} share addresses`;
      return [{ kind: "blocks-overlap", severity: "corrupt", message, block: formatPrefix(cidr) }];
    }
    around = cidr;
    return [];
  });
}

type HandlesByBlock = ReadonlyMap<string, ReadonlySet<string>>;

/** The handles that know of addresses in each block. */
function handlesByBlock({ handles }: IpamRecords): HandlesByBlock {
  const byBlock = new Map<string, Set<string>>();
  for (const { handleId, blocks } of handles) {
    for (const [name, count] of Object.entries(blocks)) {
      if (count <= 0) continue;
      const known = byBlock.get(name);
      if (known) known.add(handleId);
      else byBlock.set(name, new Set([handleId]));
    }
  }
  return byBlock;
}

function allocationProblems(block: IPAMBlock, pools: readonly Prefix[], handlesOf: HandlesByBlock): readonly Problem[] {
  const name = formatPrefix(block.cidr);
  const known = handlesOf.get(name) ?? new Set();
  return block.allocations.flatMap((index, ordinal): Problem[] => {
    if (index === undefined) return [];
    const place = addressAt(block, ordinal);
    const address = formatAddress(place);
    const { handleId: handle, secondary = {} } = attributesOf(block, ordinal) ?? {};
    const where = { block: name, address, ...(handle === undefined ? {} : { handle }) };
    const problems: Problem[] = [];
    if (handle !== undefined && !known.has(handle)) {
      const message = `Address ${address} is held by handle "${handle}", which does not know of it`;
      problems.push({ kind: "allocation-without-handle", severity: "corrupt", message, ...where });
    }
    if (!pools.some((pool) => prefixContains(pool, place))) {
      const message = `Address ${address} lies in no pool`;
      // The agent of its node replaces that of a tunnel when its pool is gone.
      const severity = tunnelTitle(secondary) === undefined ? "corrupt" : "unfinished";
      problems.push({ kind: "allocation-outside-pools", severity, message, ...where });
    }
    return problems;
  });
}

function handleProblems({ blocks, handles }: IpamRecords): readonly Problem[] {
  const byName = new Map(blocks.map((block) => [formatPrefix(block.cidr), block]));
  return handles.flatMap(({ handleId: handle, blocks: counts }) =>
    Object.entries(counts).flatMap(([name, count]): Problem[] => {
      const block = byName.get(name);
      const where = { block: name, handle };
      if (!block) {
        const message = `Handle "${handle}" names block ${name}, which does not exist`;
        return [{ kind: "handle-without-block", severity: "unfinished", message, ...where }];
      }
      const actual = ordinalsOf(block, { handle }).length;
      const message = `Handle "${handle}" counts ${counted(count, "address", "addresses")} in block ${name}, which has ${actual}`;
      const severity = count > actual ? "unfinished" : "corrupt";
      return actual === count ? [] : [{ kind: "handle-count-wrong", severity, message, ...where }];
    }),
  );
}

function affinityProblems({ blocks, affinities, now }: IpamRecords): readonly Problem[] {
  const byName = new Map(blocks.map((block) => [formatPrefix(block.cidr), block]));
  const claims = new Set(affinities.map(({ node, cidr }) => `${formatPrefix(cidr)} ${node}`));
  const ofAffinities = affinities.flatMap(({ node, cidr, state }): Problem[] => {
    const name = formatPrefix(cidr);
    const block = byName.get(name);
    const severity = state === "confirmed" ? "corrupt" : "unfinished";
    if (!block) {
      const message = `Node "${node}" claims block ${name}, which does not exist`;
      return [{ kind: "affinity-without-block", severity, message, block: name, node }];
    }
    if (affineNode(block) !== node) {
      const message = `Node "${node}" claims block ${name}, which belongs to ${affineNode(block) ?? "nobody"}`;
      return [{ kind: "affinity-stale", severity, message, block: name, node }];
    }
    if (state === "confirmed") return [];
    const message = `Node "${node}" claims its block ${name}, but the claim is ${state}`;
    return [{ kind: "affinity-unconfirmed", severity, message, block: name, node }];
  });
  const ofBlocks = blocks.flatMap((block): Problem[] => {
    const name = formatPrefix(block.cidr);
    const node = affineNode(block);
    if (node === undefined) {
      const rests = now === undefined ? block.released !== undefined : hasResting(block, now);
      const message = `Block ${name} is empty and has no affinity`;
      return isEmpty(block) && !rests
        ? [{ kind: "block-abandoned", severity: "unfinished", message, block: name }]
        : [];
    }
    const message = `Block ${name} belongs to node "${node}", which does not claim it`;
    if (claims.has(`${name} ${node}`)) return [];
    return [{ kind: "block-without-affinity", severity: "unfinished", message, block: name, node }];
  });
  return [...ofAffinities, ...ofBlocks];
}
