/**
 * How a pool is divided into smaller ones. Pure: from the pools in the datastore to what is left to do.
 *
 *   mark the pool (disabled, with what it was) ──> create each part ──> delete the pool
 *
 * The blocks and the addresses in them stay as they are: each of them lies in one of the parts. Parts overlap the pool
 * until it is deleted, so nothing is assigned from them before. After a stop at any point the same call goes on: the mark
 * says how many parts there are and whether the pool was enabled.
 */
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { addressBits } from "../../../ip/address.ts";
import { formatPrefix, isSamePrefix, type Prefix } from "../../../ip/prefix.ts";
import { type IPPool, poolPrefix } from "../../../model/ip-pool.ts";
import { isResourceName } from "../../../model/metadata.ts";
import { quoted } from "../../../quote.ts";

const MARK = `${identity.labelPrefix}split`;

export interface Mark {
  readonly parts: number;
  readonly wasDisabled: boolean;
}

export type SplitPlan =
  | { readonly kind: "done"; readonly parts: readonly IPPool[] }
  | {
      readonly kind: "left";
      readonly pool: IPPool;
      /** All parts, and those that do not exist yet. */
      readonly parts: readonly IPPool[];
      readonly missing: readonly IPPool[];
      /** The pool with its mark; absent if it has it. */
      readonly marked?: IPPool;
    };

/** A pool by its name or by its CIDR. */
export type PoolChoice = { readonly name: string } | { readonly cidr: Prefix };

export function planSplit(pools: readonly IPPool[], chosen: PoolChoice, number: number): SplitPlan {
  const pool = pools.find((each) => isChosen(each, chosen));
  if (pool === undefined) return planOfDone(pools, chosen, number);
  const mark = markOf(pool) ?? { parts: number, wasDisabled: pool.spec.disabled };
  if (mark.parts !== number) {
    throw refuse(pool.metadata.name, `a split into ${mark.parts} has begun`, `run it again with ${mark.parts}`);
  }
  const parts = partsOf(pool, mark);
  for (const part of parts) refuseOther(part, pools, pool);
  const marked = markOf(pool) === undefined ? { marked: withMark(pool, mark) } : {};
  return { kind: "left", pool, parts, missing: parts.filter((part) => !exists(part, pools)), ...marked };
}

/** The pool is gone: either it was split already, or it never existed. */
function planOfDone(pools: readonly IPPool[], chosen: PoolChoice, number: number): SplitPlan {
  const groups = Map.groupBy(pools, ({ metadata }) => /^split-(.+)-\d+$/.exec(metadata.name)?.[1] ?? "");
  for (const [name, parts] of groups) {
    const sorted = Array.from({ length: number }, (_, index) =>
      parts.find(({ metadata }) => metadata.name === partName(name, index)),
    ).filter((part) => part !== undefined);
    const [first] = sorted;
    if (name === "" || first === undefined || sorted.length !== number || parts.length !== number) continue;
    const { network, length } = poolPrefix(first);
    const whole = { network, length: length - Math.log2(number) };
    const isRight = "name" in chosen ? chosen.name === name : isSamePrefix(chosen.cidr, whole);
    const isWhole = sorted.every((part, index) => isSamePrefix(poolPrefix(part), partPrefix(whole, number, index)));
    if (isRight && isWhole) return { kind: "done", parts: sorted };
  }
  const text = "name" in chosen ? chosen.name : formatPrefix(chosen.cidr);
  throw new PluginError("resource-missing", `Cannot split pool ${quoted(text)}: it does not exist`, {
    details: `pools: ${pools.map(({ metadata, spec }) => `${metadata.name} (${spec.cidr})`).join(", ") || "none"}`,
  });
}

function isChosen(pool: IPPool, chosen: PoolChoice): boolean {
  return "name" in chosen ? pool.metadata.name === chosen.name : isSamePrefix(poolPrefix(pool), chosen.cidr);
}

function partsOf(pool: IPPool, { parts: number, wasDisabled }: Mark): readonly IPPool[] {
  const whole = poolPrefix(pool);
  const { name, labels, annotations = {}, finalizers } = pool.metadata;
  const most = 2 ** (pool.spec.blockSize - whole.length);
  if (number > most) {
    const remedy = most < 2 ? "a pool of one block cannot be split" : `use at most ${most}`;
    throw refuse(name, `a part would be smaller than a block (/${pool.spec.blockSize})`, remedy);
  }
  const { [MARK]: _, ...kept } = annotations;
  return Array.from({ length: number }, (_, index) => ({
    ...pool,
    metadata: {
      name: checkedName(name, index),
      ...(labels === undefined ? {} : { labels }),
      ...(Object.keys(kept).length === 0 ? {} : { annotations: kept }),
      // In the orchestrator's API it protects a pool that has blocks.
      ...(finalizers === undefined ? {} : { finalizers }),
    },
    spec: { ...pool.spec, cidr: formatPrefix(partPrefix(whole, number, index)), disabled: wasDisabled },
  }));
}

function partName(name: string, index: number): string {
  return `split-${name}-${index}`;
}

function checkedName(name: string, index: number): string {
  const part = partName(name, index);
  if (isResourceName(part)) return part;
  throw refuse(name, `the name of a part, ${quoted(part)}, would be too long`, "create the pool under a shorter name");
}

function partPrefix({ network, length }: Prefix, number: number, index: number): Prefix {
  const partLength = length + Math.log2(number);
  const bits = BigInt(addressBits(network.family) - partLength);
  return { network: { ...network, value: network.value + (BigInt(index) << bits) }, length: partLength };
}

function exists(part: IPPool, pools: readonly IPPool[]): boolean {
  return pools.some(({ metadata }) => metadata.name === part.metadata.name);
}

/** Before anything is written: a pool of the name of a part must be that part. */
function refuseOther(part: IPPool, pools: readonly IPPool[], { metadata }: IPPool): void {
  const other = pools.find((pool) => pool.metadata.name === part.metadata.name);
  if (other === undefined || isSamePrefix(poolPrefix(other), poolPrefix(part))) return;
  const reason = `pool ${quoted(part.metadata.name)} exists and is ${other.spec.cidr}, not ${part.spec.cidr}`;
  throw refuse(metadata.name, reason, "delete or rename that pool first");
}

function markOf({ metadata }: IPPool): Mark | undefined {
  const found = /^(\d+) (enabled|disabled)$/.exec(metadata.annotations?.[MARK] ?? "");
  return found === null ? undefined : { parts: Number(found[1]), wasDisabled: found[2] === "disabled" };
}

function withMark(pool: IPPool, { parts, wasDisabled }: Mark): IPPool {
  const annotations = { ...pool.metadata.annotations, [MARK]: `${parts} ${wasDisabled ? "disabled" : "enabled"}` };
  return { ...pool, metadata: { ...pool.metadata, annotations }, spec: { ...pool.spec, disabled: true } };
}

function refuse(name: string, reason: string, remedy: string): PluginError {
  return new PluginError("resource-invalid", `Cannot split pool ${quoted(name)}: ${reason}`, { details: remedy });
}
