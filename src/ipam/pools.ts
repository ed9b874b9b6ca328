/**
 * Which pools an address of one family may come from.
 *
 * Requested pools (by CIDR or by name) are used in the order requested, and
 * must exist, be enabled and be of the family; they need not select the node.
 * Otherwise every enabled pool that selects the node may be used.
 * Either way the pool must allow the intended use. Pure.
 */
import { PluginError } from "../errors.ts";
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import { formatPrefix, isSamePrefix, type Prefix, parsePrefix, prefixContains } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";

/** What the allocator needs to know about an IPPool. */
export interface Pool {
  readonly name: string;
  readonly cidr: Prefix;
  /** The prefix length of its blocks. */
  readonly blockLength: number;
  readonly disabled: boolean;
  readonly natOutgoing: boolean;
  /** What it requests and nothing carries out: one message for each field. */
  readonly withoutEffect: readonly string[];
  readonly allowedUses: readonly string[];
  readonly nodeSelector: string;
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /** Its key and the revision that was read. */
  readonly key: string;
  readonly revision: string;
}

export interface PoolWish {
  readonly family: Family;
  /** CIDRs or names; if `undefined` or empty, the node selectors decide. */
  readonly asked?: readonly string[] | undefined;
  readonly intendedUse: string;
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function choosePools(pools: readonly Pool[], wish: PoolWish): readonly Pool[] {
  const asked = wish.asked ?? [];
  const chosen = asked.length > 0 ? askedPools(pools, wish.family, asked) : selectingPools(pools, wish);
  const usable = chosen.filter((pool) => pool.allowedUses.includes(wish.intendedUse));
  if (usable.length > 0) return usable;
  throw new PluginError("addresses-exhausted", `Cannot assign an IPv${wish.family} address: ${whyNone(chosen, wish)}`, {
    details: describePools(pools),
  });
}

/** The enabled pool that contains the address; throws if there is none, or if it is not one of those `asked` for. */
export function poolHolding(pools: readonly Pool[], address: Address, asked: readonly string[] = []): Pool {
  const pool = pools.find((each) => !each.disabled && prefixContains(each.cidr, address));
  if (pool === undefined) throw outside(address, "it is not in an enabled pool", pools);
  if (asked.length === 0) return pool;
  const allowed = askedPools(pools, address.family, asked);
  if (allowed.includes(pool)) return pool;
  const field = `"ipam.ipv${address.family}_pools"`;
  throw outside(address, `it is in pool "${pool.name}", which is not listed in ${field} of the network`, allowed);
}

function outside(address: Address, state: string, pools: readonly Pool[]): PluginError {
  return new PluginError("address-outside-pools", `Cannot assign address "${formatAddress(address)}": ${state}`, {
    details: describePools(pools),
  });
}

/** `pools: blue 10.0.0.0/16, red fd00::/64 (disabled)`: the pools that could have been requested, for error messages. */
function describePools(pools: readonly Pool[]): string {
  if (pools.length === 0) return "there are no pools";
  return `pools: ${pools.map(describePool).join(", ")}`;
}

function describePool({ name, cidr, disabled, nodeSelector }: Pool): string {
  const limits = [disabled ? "disabled" : [], nodeSelector === "all()" ? [] : `of nodes ${nodeSelector}`].flat();
  return `${name} ${formatPrefix(cidr)}${limits.length === 0 ? "" : ` (${limits.join(", ")})`}`;
}

function askedPools(pools: readonly Pool[], family: Family, asked: readonly string[]): readonly Pool[] {
  const chosen = asked.map((text) => {
    const pool = poolNamed(pools, text);
    const fault = pool ? faultOf(pool, family) : "no such pool";
    if (!pool || fault) {
      throw new PluginError("pool-unknown", `Cannot use pool ${quoted(text)}: ${fault}`, {
        details: describePools(pools),
      });
    }
    return pool;
  });
  return [...new Set(chosen)];
}

function poolNamed(pools: readonly Pool[], text: string): Pool | undefined {
  const cidr = parsePrefix(text);
  return cidr ? pools.find((pool) => isSamePrefix(pool.cidr, cidr)) : pools.find((pool) => pool.name === text);
}

function faultOf(pool: Pool, family: Family): string | undefined {
  if (pool.cidr.network.family !== family) return `it is of IPv${pool.cidr.network.family}, not of IPv${family}`;
  return pool.disabled ? "it is disabled" : undefined;
}

function selectingPools(pools: readonly Pool[], wish: PoolWish): readonly Pool[] {
  return pools.filter(
    (pool) => pool.cidr.network.family === wish.family && !pool.disabled && pool.selects(wish.labels),
  );
}

function whyNone(chosen: readonly Pool[], wish: PoolWish): string {
  if (chosen.length === 0) return `no enabled IPv${wish.family} pool selects node ${quoted(wish.node)}`;
  const names = chosen.map((pool) => `"${pool.name}"`).join(", ");
  return `no pool of ${names} allows the use "${wish.intendedUse}"`;
}
