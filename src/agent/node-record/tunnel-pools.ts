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
  const all = Array.from(pools).filter((pool) => poolPrefix(pool).network.family === family && hasTunnel(pool, kind));
  const open = all.filter(({ spec }) => !spec.disabled && spec.allowedUses.includes("Tunnel"));
  const selecting = open.filter((pool) => isSelected(pool, labels));
  const others = open.filter((pool) => !selecting.includes(pool));
  return { open: [selecting, others].filter((group) => group.length > 0).map(namesOf), prefixes: all.map(poolPrefix) };
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
  /** No pool needs the tunnel any more, or none lets an address be taken. */
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
