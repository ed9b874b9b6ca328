/** What the objects of an earlier release become. */

import { POOL_FINALIZER } from "../../datastore/kube/pool-protection.ts";
import { type Prefix, parsePrefix, prefixCovers } from "../../ip/prefix.ts";
import { parseKey } from "../../model/keys.ts";
import { POOL } from "../../model/kinds.ts";
import type { Obstacle } from "../engine/facts.ts";

/** A record of the present storage that an object of the former one becomes. */
export interface CopiedRecord {
  readonly key: string;
  readonly value: string;
  /** Whose record it is, if neither key nor value says so. */
  readonly node?: string;
  /** `IPPool "blue"` */
  readonly what: string;
}

export interface Conversion {
  /** In the order in which they are written. */
  readonly records: readonly CopiedRecord[];
  /** What a person should know: fields and kinds that have no meaning any more. */
  readonly notes: readonly string[];
  /** What cannot be converted. */
  readonly obstacles: readonly Obstacle[];
}

export const NOTHING: Conversion = { records: [], notes: [], obstacles: [] };

export function joined(parts: readonly Conversion[]): Conversion {
  return {
    records: parts.flatMap(({ records }) => records),
    notes: parts.flatMap(({ notes }) => notes),
    obstacles: parts.flatMap(({ obstacles }) => obstacles),
  };
}

/** Two objects that would become one: earlier releases read a policy under its name with and without the tier. */
export function duplicates(records: readonly CopiedRecord[]): readonly Obstacle[] {
  const first = new Map<string, CopiedRecord>();
  return records.flatMap((record): Obstacle[] => {
    const other = first.get(record.key);
    if (other === undefined) {
      first.set(record.key, record);
      return [];
    }
    return [
      {
        message: `${other.what} and ${record.what} cannot both be moved: they have the same name in the present storage`,
        remedy: "delete one of them, or rename it",
      },
    ];
  });
}

export function withPoolProtection(records: readonly CopiedRecord[]): readonly CopiedRecord[] {
  const blocks = records.flatMap(({ key }): readonly Prefix[] => {
    const parts = parseKey(key);
    return parts?.kind === "block" ? [parts.cidr] : [];
  });
  return records.map((record) => {
    if (!record.key.startsWith(POOL.prefix())) return record;
    const pool = POOL.codec.read(record.value, record.key);
    const cidr = parsePrefix(pool.spec.cidr);
    if (cidr === undefined || !blocks.some((block) => prefixCovers(cidr, block))) return record;
    const metadata = { ...pool.metadata, finalizers: [POOL_FINALIZER] };
    return { ...record, value: JSON.stringify({ ...pool, metadata }) };
  });
}
