/**
 * Whether somebody has assigned or released addresses in the present storage while it should have been locked. What the
 * former storage says must not replace such records: the addresses are those of running pods.
 */
import type { Datastore, Entry } from "../../../datastore/datastore.ts";
import { formatAddress } from "../../../ip/address.ts";
import { addressAt, attributesOf } from "../../../ipam/block.ts";
import { readBlock } from "../../../model/ipam-block.ts";
import { IPAM_CONFIGURATION_KEY, parseKey } from "../../../model/keys.ts";
import { digestOf } from "../../engine/object-content.ts";
import type { StepSite } from "../../engine/step.ts";
import { isIpam } from "../../former-storage/compare.ts";
import type { CopiedRecord } from "../../former-storage/conversion.ts";
import { ofRunningPods, type PodAddress } from "../../former-storage/late-addresses.ts";
import { copiesMark, hasUnlockBegun, presentLock, replaceCopiesMark } from "../../former-storage/lock.ts";
import { IPAM_PREFIXES, readRecords } from "../../former-storage/stored-records.ts";

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

export interface Copies {
  readonly state: CopiesState;
  readonly present: ReadonlyMap<string, Entry>;
  /** What the former storage is converted to. */
  records(): Promise<readonly CopiedRecord[]>;
}

export interface CopiesUse {
  readonly isUsed: boolean;
  /** Those that say so, if the mark does not. */
  readonly addresses: readonly string[];
}

/**
 * Whether others have assigned or released addresses: the former storage must not replace them. If the mark does not tell,
 * addresses that only the present storage has do, but only those of running pods: others are of DELs that came late.
 */
export async function useOfCopies(
  site: Pick<StepSite, "objects" | "backups" | "stateOf">,
  { state, present, records }: Copies,
): Promise<CopiesUse> {
  const isUsed = state === "used" || (state === "unknown" && (await hasUnlockBegun(site.backups)));
  if (isUsed || !isUndecided(state) || areAgentsToCome(site)) return { isUsed, addresses: [] };
  const running = await ofRunningPods(site.objects, addressesOfPresent(await records(), present));
  return { isUsed: running.length > 0, addresses: running.map(({ address }) => address) };
}

/** The mark does not say whether others have used the copies. */
function isUndecided(state: CopiesState): boolean {
  return state === CORRECTED || state === "unknown";
}

/** Steps that bring the node agents of this release: before them nobody uses the present storage. */
const AGENT_STEPS = ["chart", "operator", "manifest"];

function areAgentsToCome({ stateOf }: Pick<StepSite, "stateOf">): boolean {
  const states = AGENT_STEPS.flatMap((step) => stateOf(step) ?? []);
  return states.length > 0 && states.every((state) => state === "pending");
}

/** Addresses of pods that the present storage has assigned, and the former one has not: to replace or delete the copies loses them. Pure. */
function addressesOfPresent(
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly PodAddress[] {
  const wanted = new Map(records.map((record) => [record.key, record]));
  return [...present.values()]
    .filter(({ key }) => parseKey(key)?.kind === "block")
    .flatMap(({ key, value }) => {
      const record = wanted.get(key);
      const [now, former] = [readBlock(value, key), record && readBlock(record.value, record.what)];
      return now.allocations.flatMap((_, ordinal) => {
        const [after, before] = [attributesOf(now, ordinal), former && attributesOf(former, ordinal)];
        const { handleId = "", secondary: { pod, namespace } = {} } = after ?? {};
        if (pod === undefined || namespace === undefined || handleId === before?.handleId) return [];
        return [{ address: formatAddress(addressAt(now, ordinal)), namespace, pod, handleId }];
      });
    });
}

/** The configuration of IPAM is a setting, which people edit. */
export function isAssignment(key: string): boolean {
  return isIpam(key) && key !== IPAM_CONFIGURATION_KEY;
}

function digestOfRecords(records: ReadonlyMap<string, Entry>): string {
  const texts = [...records.values()].filter(({ key }) => isAssignment(key)).map(({ key, value }) => `${key} ${value}`);
  return digestOf(texts.toSorted().join("\n"));
}
