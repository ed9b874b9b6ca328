/**
 * From which pools a node takes the address of a tunnel, and in which it may keep one. Pure.
 *
 * Every pod reaches every pod: as soon as a pool has the tunnel, every node needs it, also those that the pool does not
 * select.
 */
import { type Address, parseAddress } from "../../ip/address.ts";
import { type Prefix, prefixContains } from "../../ip/prefix.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import type { TunnelAddressKind } from "../../model/tunnel-address.ts";
import { parseSelector } from "../../selector/parse.ts";
import { selects } from "../../selector/selector.ts";

export interface TunnelPools {
  /** The names of those that an address may be taken from; the next group if none of the first has one. */
  readonly open: readonly (readonly string[])[];
  /** All that an address may be in; disabled ones too, because their pods still need the tunnel. */
  readonly prefixes: readonly Prefix[];
}

export function tunnelPools(
  { kind, family }: TunnelAddressKind,
  pools: Iterable<IPPool>,
  labels: Readonly<Record<string, string>>,
): TunnelPools {
  const ofFamily = Array.from(pools).filter((pool) => poolPrefix(pool).network.family === family);
  const all = ofFamily.filter((pool) => hasTunnel(pool, kind));
  const openOfTunnel = all.filter(isOpen);
  // A node that joins must reach the pods of a disabled pool too: any address will do, and is replaced when it can be.
  const open = all.length > 0 && openOfTunnel.length === 0 ? ofFamily.filter(isOpen) : openOfTunnel;
  const selecting = open.filter((pool) => isSelected(pool, labels));
  const others = open.filter((pool) => !selecting.includes(pool));
  const groups = [selecting, others].filter((group) => group.length > 0);
  return { open: groups.map(namesOf), prefixes: [...new Set([...all, ...open])].map(poolPrefix) };
}

/** Nothing is assigned from a pool that is being deleted, either. */
function isOpen({ metadata, spec }: IPPool): boolean {
  return !spec.disabled && metadata.deletionTimestamp === undefined && spec.allowedUses.includes("Tunnel");
}

function namesOf(pools: readonly IPPool[]): readonly string[] {
  return pools.map(({ metadata }) => metadata.name);
}

function hasTunnel({ spec }: IPPool, kind: TunnelAddressKind["kind"]): boolean {
  return kind === "ipip4" ? spec.ipipMode !== "Never" : spec.vxlanMode !== "Never";
}

function isSelected({ spec: { nodeSelector } }: IPPool, labels: Readonly<Record<string, string>>): boolean {
  const parsed = parseSelector(nodeSelector);
  return parsed.ok && selects(parsed.selector, labels);
}

export type TunnelDecision =
  | { readonly kind: "keep"; readonly address: Address }
  /** Whatever is held lies in no pool of the tunnel, and is released when the record names the new address. */
  | { readonly kind: "take" }
  /** No pool needs the tunnel any more, or no pool lets an address be taken. */
  | { readonly kind: "give back" };

/** `held`: what IPAM has recorded for the tunnel of this node. */
export function decideTunnel(
  recorded: string | undefined,
  held: readonly Address[],
  { open, prefixes }: TunnelPools,
): TunnelDecision {
  const usable = held.filter((address) => prefixes.some((prefix) => prefixContains(prefix, address)));
  const former = recorded === undefined ? undefined : parseAddress(recorded);
  const kept = usable.find((address) => address.value === former?.value) ?? usable[0];
  if (kept !== undefined) return { kind: "keep", address: kept };
  return { kind: open.length > 0 ? "take" : "give back" };
}
