/** Pools with blocks have a finalizer in the present storage, so that nobody deletes them by mistake. Pure. */
import { POOL_FINALIZER } from "../../../datastore/kube/pool-protection.ts";
import { type Prefix, parsePrefix, prefixCovers } from "../../../ip/prefix.ts";
import { parseKey } from "../../../model/keys.ts";
import { POOL } from "../../../model/kinds.ts";
import type { CopiedRecord } from "./conversion.ts";

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
