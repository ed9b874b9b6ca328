/**
 * Whether somebody has assigned or released addresses in the present storage while it should have been locked. What the
 * former storage says must not replace such records: the addresses are those of running pods.
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { formatAddress } from "../../ip/address.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import { readBlock } from "../../model/ipam-block.ts";
import { parseKey } from "../../model/keys.ts";
import { digestOf } from "../object-content.ts";
import { isIpam } from "./compare.ts";
import type { CopiedRecord } from "./conversion.ts";
import { copiesMark, presentLock, replaceCopiesMark } from "./lock.ts";
import { IPAM_PREFIXES, readRecords } from "./stored-records.ts";

/** In place of the digest: the first copy has begun, or a rollback deletes them. Nobody uses them then. */
export const INCOMPLETE = "incomplete";
/** In place of the digest: the step "unlock" writes what came late. */
const CORRECTED = "being-corrected";

/** "unknown": the mark is lost. */
export type CopiesState = "incomplete" | "untouched" | "being-corrected" | "used" | "unknown";

/** `present`: the records as they are copied. From then on a difference is somebody else's. */
export async function recordCopies(store: Datastore, present: ReadonlyMap<string, Entry>): Promise<void> {
  await replaceCopiesMark(store, await copiesMark(store), digestOfRecords(present));
}

/** Before what came late is written. */
export async function beginCorrection(store: Datastore): Promise<void> {
  await replaceCopiesMark(store, await copiesMark(store), CORRECTED);
}

/** `present`: the records, if they were read. */
export async function copiesState(store: Datastore, present?: ReadonlyMap<string, Entry>): Promise<CopiesState> {
  const lock = await presentLock(store);
  const mark = await copiesMark(store);
  if (mark === INCOMPLETE || mark === CORRECTED) return mark;
  const records = present ?? (await readRecords(store, IPAM_PREFIXES));
  // The lock is copied first, and deleted last.
  if (lock === "absent") return [...records.keys()].some(isIpam) ? "unknown" : "incomplete";
  if (mark === undefined) return lock === "unlocked" ? "used" : "unknown";
  return mark === digestOfRecords(records) ? "untouched" : "used";
}

/** Whether others have assigned or released addresses: the former storage must not replace them. Pure. */
export function areCopiesUsed(
  state: CopiesState,
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): boolean {
  return isUndecided(state) ? addressesOfPresent(records, present).length > 0 : state === "used";
}

/** The mark does not say whether others have used the copies: their content does. */
export function isUndecided(state: CopiesState): state is "being-corrected" | "unknown" {
  return state === CORRECTED || state === "unknown";
}

/** An address that the present storage has assigned, and the former one has not: to replace or delete the copies loses it. Pure. */
export function addressesOfPresent(
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly string[] {
  const wanted = new Map(records.map((record) => [record.key, record]));
  return [...present.values()]
    .filter(({ key }) => parseKey(key)?.kind === "block")
    .flatMap(({ key, value }) => {
      const record = wanted.get(key);
      const [now, former] = [readBlock(value, key), record && readBlock(record.value, record.what)];
      return now.allocations.flatMap((_, ordinal) => {
        const [after, before] = [attributesOf(now, ordinal), former && attributesOf(former, ordinal)];
        return after === undefined || after.handleId === before?.handleId
          ? []
          : [formatAddress(addressAt(now, ordinal))];
      });
    });
}

function digestOfRecords(records: ReadonlyMap<string, Entry>): string {
  const texts = [...records.values()].filter(({ key }) => isIpam(key)).map(({ key, value }) => `${key} ${value}`);
  return digestOf(texts.toSorted().join("\n"));
}
