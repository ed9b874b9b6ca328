/** The pools that an Installation declares, written to the datastore; those of an administrator are left alone. */
import type { OrderedChange } from "../datastore/datastore.ts";
import type { IPPool } from "../model/ip-pool.ts";
import { POOL } from "../model/kinds.ts";
import type { Problem } from "../model/problem.ts";
import type { EffectiveInstallation } from "../release/installation/effective-installation.ts";
import { planPools } from "../release/installation/plan-pools.ts";
import type { Records, StoredResource } from "./follow-records.ts";

interface WrittenPools {
  /** All that there are now. */
  readonly pools: readonly IPPool[];
  readonly problems: readonly Problem[];
  /** They have to be changed when the datastore is unlocked. */
  readonly isWaiting: boolean;
}

/** All of them, or none if there is a problem with one. */
export async function writePools({ network }: EffectiveInstallation, records: Records): Promise<WrittenPools> {
  const existing = records.pools.map(({ resource }) => resource);
  const { create, update, adopt, disable, problems } = planPools(network.ipPools, existing);
  if (problems.length > 0) return { pools: existing, problems, isWaiting: false };
  const changed = [...update, ...adopt, ...disable];
  const changes = poolChanges({ create, update: changed }, records.pools);
  if (records.isLocked && changes.length > 0) return { pools: existing, problems, isWaiting: true };
  await records.commit(changes, "the IP pools");
  return { pools: poolsAfter(existing, [...create, ...changed]), problems, isWaiting: false };
}

export function poolChanges(
  wanted: { readonly create: readonly IPPool[]; readonly update: readonly IPPool[] },
  existing: readonly StoredResource<IPPool>[],
): readonly OrderedChange[] {
  const created = wanted.create.map((pool) => {
    return { kind: "create", key: POOL.key(pool.metadata), value: POOL.codec.write(pool) } as const;
  });
  const updated = wanted.update.flatMap((pool) => {
    const before = existing.find(({ resource }) => resource.metadata.name === pool.metadata.name);
    if (before === undefined) return [];
    const { text, revision } = before;
    return [{ kind: "update", key: POOL.key(pool.metadata), value: POOL.codec.write(pool, text), revision } as const];
  });
  return [...created, ...updated];
}

/** The pools that there are after these changes: what is rendered depends on them. */
export function poolsAfter(existing: readonly IPPool[], written: readonly IPPool[]): readonly IPPool[] {
  const names = new Set(written.map(({ metadata }) => metadata.name));
  return [...existing.filter(({ metadata }) => !names.has(metadata.name)), ...written];
}
