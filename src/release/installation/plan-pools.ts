/**
 * What to do with the pools of the datastore so that they are as declared. Pure.
 *
 * A pool is never deleted: neither with the Installation nor when it is removed from the declaration, because running
 * pods have its addresses. A removed pool is disabled, so that it gives out no more of them.
 */
import { isSamePrefix } from "../../ip/prefix.ts";
import { checkPoolOverlap, checkPoolUpdate, type IPPool, type IPPoolSpec, poolPrefix } from "../../model/ip-pool.ts";
import type { Problem } from "../../model/problem.ts";
import { isManaged, MANAGED_BY_TEXT, withManagedLabel } from "../managed-by-label.ts";
import { poolPath } from "./pool-resource.ts";

export interface PoolPlan {
  readonly create: readonly IPPool[];
  /** Managed pools whose declaration has changed. */
  readonly update: readonly IPPool[];
  /** Pools of others that are exactly as declared: they only get the label. */
  readonly adopt: readonly IPPool[];
  /** Managed pools that are no longer declared. */
  readonly disable: readonly IPPool[];
  /** If there are any, nothing is to be changed. */
  readonly problems: readonly Problem[];
}

/** `declared`: the pools of the effective installation. If there are none, the operator manages none and changes nothing. */
export function planPools(declared: readonly IPPool[], existing: readonly IPPool[]): PoolPlan {
  if (declared.length === 0) return { create: [], update: [], adopt: [], disable: [], problems: [] };
  const pairs = declared.map((pool, index) => ({ pool, index, before: existing.find((other) => isSame(pool, other)) }));
  const problems = pairs.flatMap(({ pool, index, before }) =>
    before === undefined ? creationProblems(pool, index, existing) : changeProblems(pool, index, before),
  );
  const changed = pairs.flatMap(({ pool, before }) => (before === undefined ? [] : [{ pool, before }]));
  return {
    create: pairs.filter(({ before }) => before === undefined).map(({ pool }) => pool),
    update: changed
      .filter(({ pool, before }) => isManaged(before) && !isEqualSpec(pool.spec, before.spec))
      .map(({ pool, before }) => ({ ...before, spec: pool.spec })),
    adopt: changed.filter(({ before }) => !isManaged(before)).map(({ before }) => withManagedLabel(before)),
    disable: existing
      .filter((pool) => isManaged(pool) && !pool.spec.disabled && !declared.some((other) => isSame(pool, other)))
      .map((pool) => ({ ...pool, spec: { ...pool.spec, disabled: true } })),
    problems,
  };
}

function isSame(left: IPPool, right: IPPool): boolean {
  return isSamePrefix(poolPrefix(left), poolPrefix(right));
}

function creationProblems(pool: IPPool, index: number, existing: readonly IPPool[]): readonly Problem[] {
  const { name } = pool.metadata;
  const taken = existing.find(({ metadata }) => metadata.name === name);
  if (taken !== undefined) {
    const message = `is the name of the pool ${taken.spec.cidr}; use another name`;
    return [{ path: `${poolPath(index)}.name`, value: name, message }];
  }
  return checkPoolOverlap(pool, existing).map((problem) => ({ ...problem, path: `${poolPath(index)}.cidr` }));
}

function changeProblems(pool: IPPool, index: number, before: IPPool): readonly Problem[] {
  const { name } = before.metadata;
  if (pool.metadata.name !== name) {
    const message = `cannot be changed: the pool ${before.spec.cidr} is called "${name}"; use that name`;
    return [{ path: `${poolPath(index)}.name`, value: pool.metadata.name, message }];
  }
  const fixed = checkPoolUpdate(before, pool).map((problem) => ({
    ...problem,
    path: problem.path.replace(/^spec/, poolPath(index)),
  }));
  if (fixed.length > 0 || isManaged(before) || isEqualSpec(pool.spec, before.spec)) return fixed;
  const differing = declaredFields(pool.spec).filter((field) => !isEqual(pool.spec[field], before.spec[field]));
  const differences = differing.map((field) => `${field} ${JSON.stringify(before.spec[field])}`).join(", ");
  const message = `differs from the pool that exists (${differences}), which the operator does not manage; declare it as it is, or give it to the operator: label it ${MANAGED_BY_TEXT}`;
  return [{ path: poolPath(index), value: name, message }];
}

function isEqualSpec(left: IPPoolSpec, right: IPPoolSpec): boolean {
  return declaredFields(left).every((field) => isEqual(left[field], right[field]));
}

/** One without a default is declared too: without it the pool serves every namespace. */
function declaredFields(spec: IPPoolSpec): readonly (keyof IPPoolSpec)[] {
  const given = Object.keys(spec).filter((field): field is keyof IPPoolSpec => field in spec);
  return [...new Set([...given, "namespaceSelector" as const])];
}

/** The order of uses has no meaning. */
function isEqual(left: unknown, right: unknown): boolean {
  const text = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...value].sort() : value);
  return text(left) === text(right);
}
