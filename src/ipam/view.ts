/**
 * The facts as the allocator uses them: pools, blocks, affinities and handles
 * instead of keys and text. `baseWanted()` is the first read of every
 * assignment; after that only blocks, and pages of blocks, may be unknown.
 */
import type { Entry, Wanted } from "../datastore/datastore.ts";
import type { Unreadable } from "../datastore/read-each.ts";
import type { Family } from "../ip/address.ts";
import { formatPrefix, type Prefix, prefixCovers } from "../ip/prefix.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import * as keys from "../model/keys.ts";
import type { StoredNode } from "../model/stored-resources.ts";
import { type Facts, Unread } from "./facts.ts";
import type { Pool } from "./pools.ts";
import * as records from "./records.ts";
import { cooldownOf } from "./rest.ts";

export interface KnownBlock {
  readonly kind: "present";
  readonly block: IPAMBlock;
  readonly revision: string;
}

export type BlockState = KnownBlock | { readonly kind: "absent" } | { readonly kind: "unknown" };

const POOLS = { kind: "prefix", prefix: keys.resourcesPrefix("ippools") } as const satisfies Wanted;
const RESERVATIONS = { kind: "prefix", prefix: keys.resourcesPrefix("ipreservations") } as const satisfies Wanted;
/** What every assignment lists. It changes seldom, and no commit of another assignment changes it. */
export const LISTED_PREFIXES: readonly string[] = [POOLS.prefix, RESERVATIONS.prefix];

export const WANTED_CONFIGURATION: Wanted = { kind: "key", key: keys.IPAM_CONFIGURATION_KEY };

/**
 * Everything an assignment needs except the blocks. `isSteady`: the likely blocks probably suffice. Then the first attempt
 * needs neither the claims nor the handle, which does not exist yet, and the others only in some clusters.
 */
export function baseWanted(
  node: string,
  handle: string,
  { isSteady }: { readonly isSteady: boolean },
): readonly Wanted[] {
  const further = [WANTED_CONFIGURATION, wantedNode(node), affinitiesOf(node), wantedHandle(handle)];
  return [
    POOLS,
    RESERVATIONS,
    ...(isSteady ? further.map((wanted) => ({ ...wanted, optional: true }) as const) : further),
  ];
}

/** The blocks that are probably needed and those that a failed attempt needed, each once. */
export function wantedBlocks(likely: readonly string[], again: readonly string[]): readonly Wanted[] {
  const lost = again.filter((key) => keys.parseKey(key)?.kind === "block");
  const wanted = new Set([...likely.map((cidr) => keys.blockKey(records.requirePrefix(cidr))), ...lost]);
  return [...wanted].map((key) => ({ kind: "key", key }));
}

/** A decision asks for the pools several times, and the node agent gets the same list for many calls. */
const poolsOf = new WeakMap<readonly Entry[], records.DecodedPools>();

export class View {
  constructor(
    private readonly facts: Facts,
    readonly node: string,
  ) {}

  pools(): readonly Pool[] {
    return this.decodedPools().pools;
  }

  unreadablePools(): readonly Unreadable[] {
    return this.decodedPools().unreadable;
  }

  private decodedPools(): records.DecodedPools {
    const entries = this.read(POOLS);
    const known = poolsOf.get(entries);
    if (known !== undefined) return known;
    const pools = records.decodePools(entries, (entry) => this.facts.decode(entry, records.decodePool));
    poolsOf.set(entries, pools);
    return pools;
  }

  reserved(): readonly Prefix[] {
    return this.read(RESERVATIONS).flatMap((entry) => this.facts.decode(entry, records.decodeReservation));
  }

  /** `undefined`: there is no list of that name. */
  addressList(name: string): records.AddressList | undefined {
    const entry = this.read(wantedAddressList(name))[0];
    return entry && this.facts.decode(entry, records.decodeAddressList);
  }

  configuration(): records.Configuration {
    const entry = this.read(WANTED_CONFIGURATION)[0];
    return entry ? this.facts.decode(entry, records.decodeConfiguration) : records.DEFAULT_CONFIGURATION;
  }

  /**
   * For how many seconds released addresses of the block rest by a setting; 0: none. Nothing is read for the default of the
   * cluster: if the configuration was not read, it is what the block says.
   */
  cooldownOf(block: IPAMBlock): number {
    const pool = this.pools().find(({ cidr }) => prefixCovers(cidr, block.cidr));
    if (pool?.cooldownSeconds !== undefined) return cooldownOf(pool.cooldownSeconds);
    const isConfigured = this.facts.answer(WANTED_CONFIGURATION) !== undefined;
    return cooldownOf(isConfigured ? this.configuration().cooldownSeconds : block.cooldownSeconds);
  }

  /** The node's labels; `undefined` if it has not registered. */
  nodeLabels(): Readonly<Record<string, string>> | undefined {
    return this.registeredNode()?.labels;
  }

  registeredNode(): StoredNode | undefined {
    const entry = this.read(wantedNode(this.node))[0];
    return entry && this.facts.decode(entry, records.decodeNode);
  }

  /** Whether the node was read. */
  knowsNode(): boolean {
    return this.facts.answer(wantedNode(this.node)) !== undefined;
  }

  /** Whether the node's claims were read. */
  knowsAffinities(): boolean {
    return this.facts.answer(affinitiesOf(this.node)) !== undefined;
  }

  affinities(family: Family): readonly records.HostAffinity[] {
    return this.read(affinitiesOf(this.node))
      .map((entry) => this.facts.decode(entry, records.decodeAffinity))
      .filter((affinity) => affinity?.cidr.network.family === family)
      .filter((affinity) => affinity !== undefined);
  }

  /** This node's claim on the block. */
  affinity(cidr: Prefix): records.HostAffinity | undefined {
    return this.affinities(cidr.network.family).find((each) => each.cidr.network.value === cidr.network.value);
  }

  handle(handle: string): records.StoredHandle | undefined {
    const entry = this.facts.entry(keys.handleKey(handle));
    return entry && this.facts.decode(entry, records.decodeHandle);
  }

  unreadHandles(handles: readonly string[]): readonly Wanted[] {
    return handles.filter((handle) => !this.facts.knows(keys.handleKey(handle))).map(wantedHandle);
  }

  /** The blocks in which the handle counts addresses. */
  handleBlocks(handle: string, family?: Family): readonly Prefix[] {
    const cidrs = Object.keys(this.handle(handle)?.blocks ?? {}).map(records.requirePrefix);
    return family === undefined ? cidrs : cidrs.filter((cidr) => cidr.network.family === family);
  }

  block(cidr: Prefix): BlockState {
    const key = keys.blockKey(cidr);
    const entry = this.facts.entry(key);
    if (entry) return this.decodeBlock(entry);
    return { kind: this.facts.knows(key) ? "absent" : "unknown" };
  }

  decodeBlock(entry: Entry): KnownBlock {
    return this.facts.decode(entry, presentBlock);
  }

  /** Every block of the family that was read and exists. */
  *knownBlocks(family?: Family): Generator<KnownBlock> {
    for (const each of family === undefined ? FAMILIES : [family]) {
      for (const entry of this.facts.below(keys.blocksPrefix(each))) yield this.decodeBlock(entry);
    }
  }

  blockKey(cidr: Prefix): string {
    return keys.blockKey(cidr);
  }

  wantedBlock(cidr: Prefix): Wanted {
    return { kind: "key", key: keys.blockKey(cidr) };
  }

  /** A page of all blocks of the cluster: the last resort. */
  wantedBlockPage(family: Family, limit: number, after: string | undefined): Wanted {
    const page = { kind: "prefix", prefix: keys.blocksPrefix(family), limit } as const;
    return after === undefined ? page : { ...page, after };
  }

  answer(wanted: Wanted): readonly Entry[] | undefined {
    return this.facts.answer(wanted);
  }

  private read(wanted: Wanted): readonly Entry[] {
    const entries = this.facts.answer(wanted);
    if (entries) return entries;
    throw new Unread(wanted);
  }
}

export function wantedAddressList(name: string): Wanted {
  return { kind: "key", key: keys.resourceKey("ipaddresslists", { name }) };
}

function wantedNode(node: string): Wanted {
  return { kind: "key", key: keys.resourceKey("nodes", { name: node }) };
}

export function wantedHandle(handle: string): Wanted {
  return { kind: "key", key: keys.handleKey(handle) };
}

function affinitiesOf(node: string): Wanted {
  return { kind: "prefix", prefix: keys.affinitiesPrefix(node) };
}

const FAMILIES = [4, 6] as const;

function presentBlock(entry: Entry): KnownBlock {
  return { kind: "present", block: records.decodeBlock(entry), revision: entry.revision };
}

/** `10.0.0.0/26`, as handles and hints name a block. */
export function blockName(cidr: Prefix): string {
  return formatPrefix(cidr);
}
