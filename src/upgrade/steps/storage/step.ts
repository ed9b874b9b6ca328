/**
 * Moves the resources of an earlier release to the present storage, which stays locked until all nodes have this release.
 *
 *   lock the former storage -> vendor.org/v3 is served from its definitions -> copy, the lock first -> compare
 *
 * Until the step "unlock" everything can be undone: the former objects stay as they are. On etcd both releases use the same
 * records, except for the settings of the node agent.
 */
import { counted } from "../../../counted.ts";
import type { Datastore, Entry } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { parseKey } from "../../../model/keys.ts";
import { CLUSTER_INFORMATION } from "../../../model/kinds.ts";
import type { Obstacle } from "../../engine/facts.ts";
import type { PlannedChange, PlanningSite, Step, StepPlan, StepSite } from "../../engine/step.ts";
import { shortened } from "../../engine/wording.ts";
import { FORMER_API } from "../../former-names.ts";
import { compareRecords, describeDifference, isCopy, isIpam } from "../../former-storage/compare.ts";
import type { Conversion } from "../../former-storage/conversion.ts";
import { copyRecords } from "../../former-storage/copy-records.ts";
import { lockGuard } from "../../former-storage/guard-lock.ts";
import {
  copiesMark,
  FORMER_INFORMATION,
  formerLock,
  hasUnlockBegun,
  isLockRecord,
  lockedSince,
  lockPresentAgain,
  presentLock,
  readLockRecords,
  replaceCopiesMark,
  setFormerLock,
  withCopiesMark,
  withLockTime,
} from "../../former-storage/lock.ts";
import { readFormer, unknownKinds } from "../../former-storage/read-former.ts";
import { ALL_PREFIXES, IPAM_PREFIXES, readRecords } from "../../former-storage/stored-records.ts";
import { saveFormerNodes } from "../../nodes/nodes-at-lock.ts";
import { requireOperatorCanEnd } from "../../operator-install/former-operator.ts";
import { removeOwnerReferences } from "../../owned-objects/remove.ts";
import { copySettings, planSettings, remainingSettings, removeSettings } from "./etcd-settings.ts";
import { untilAddsHaveEnded } from "./late-adds.ts";
import { API_SERVICE, isServedByDefinitions, serveAggregated, serveDefinitions } from "./served-api.ts";
import { copiesState, INCOMPLETE, recordCopies, useOfCopies } from "./used-copies.ts";

const NAME = "storage";

export const storageStep: Step = {
  name: NAME,
  title: "Move the resources to their present storage",
  rule: 8,
  isTemporary: true,
  why: `Earlier releases stored their resources as ${FORMER_API.group}/${FORMER_API.version}; this release stores them as ${identity.apiGroup}/v3.`,
  async plan(site) {
    if (site.facts.storage === "etcd") return planSettings(site);
    return site.facts.storage === "former" ? planMove(site) : undefined;
  },
  async remaining(site) {
    if (site.facts.storage === "etcd") return remainingSettings(site);
    const isServed = await isServedByDefinitions(site);
    if (!isServed) return [`${identity.apiGroup}/v3 is served by the aggregated API`];
    const store = await site.openDatastore();
    const isUnlocked = (await presentLock(store)) === "unlocked";
    if (isUnlocked && (await hasUnlockBegun(site.backups))) return [];
    return [
      ...(isUnlocked ? ["somebody else has unlocked the datastore"] : []),
      ...((await formerLock(site.objects)) === "unlocked" ? ["the former storage is not locked"] : []),
      ...((await areCopied(site, store)) ? await resourceDifferences(site) : ["not everything is copied"]),
    ];
  },
  async act(site) {
    if (site.facts.storage === "etcd") return copySettings(site);
    const isServed = await isServedByDefinitions(site);
    // Of a step that was interrupted: if somebody has unlocked a storage since, the ADDs that have begun get their time.
    if (isServed && (await presentLock(await site.openDatastore())) !== "absent") await lockGuard(site, "both").look();
    if (!isServed) await requireOperatorCanEnd(site);
    await setFormerLock(site.objects, "locked");
    // The copies have other UIDs: what refers to the former ones would be deleted.
    if (!isServed) await removeOwnerReferences(site);
    await serveDefinitions(site);
    const { records, obstacles } = await readFormer(site.objects);
    const [first] = obstacles;
    if (first !== undefined) throw new PluginError("resource-invalid", first.message, { details: first.remedy });
    const store = await site.openDatastore();
    // The aggregated API has hidden it.
    if (!isServed) await lockPresentAgain(store, site.now());
    await copyAll(site, store, records);
    await saveFormerNodes(site);
    await site.notes.write({ lockedSince: await lockTimeText(store) });
    site.progress(summaryOf(records));
  },
  async verify(site) {
    return site.facts.storage === "etcd" ? [] : resourceDifferences(site);
  },
  async rollbackObstacles(site) {
    if (site.facts.storage !== "former" || !(await isServedByDefinitions(site))) return [];
    const store = await site.openDatastore();
    const refusal = await whyNotRemoved(site, store, await readRecords(store, IPAM_PREFIXES));
    return refusal === undefined ? [] : [{ message: refusal.message, remedy: refusal.details }];
  },
  async rollback(site) {
    if (site.facts.storage === "etcd") return removeSettings(site);
    // Through the aggregated API the copies would be the former objects themselves.
    if (await isServedByDefinitions(site)) await removeCopies(site);
    await serveAggregated(site);
    await setFormerLock(site.objects, "unlocked");
  },
};

async function planMove(site: PlanningSite): Promise<StepPlan> {
  const conversion = await readFormer(site.objects);
  const { records, notes, obstacles } = conversion;
  const isServed = await isServedByDefinitions(site);
  const changes: PlannedChange[] = [
    {
      action: "update",
      what: `ClusterInformation default of ${FORMER_API.group} (locked)`,
      path: FORMER_INFORMATION,
      isGuarded: true,
    },
    ...(isServed
      ? []
      : [{ action: "update", what: "APIService (served from the definitions)", path: API_SERVICE } as const]),
    { action: "create", what: summaryOf(records) },
  ];
  return {
    step: NAME,
    changes,
    obstacles: [...(await lockObstacles(site)), ...obstacles],
    notes: [
      ...notes,
      ...(await unknownKinds(site.objects)),
      'from here until the step "unlock" no pod can be started or removed: ADD and DEL are tried again by the runtime; running pods keep their network',
    ],
    estimatedSeconds: 10 + Math.ceil(records.length / 100),
    data: {},
  };
}

/** A step that has begun is not planned again, so the lock is not that of this upgrade. */
async function lockObstacles({ objects }: PlanningSite): Promise<readonly Obstacle[]> {
  if ((await formerLock(objects)) !== "locked") return [];
  const information = `${CLUSTER_INFORMATION.plural}.${FORMER_API.group} default`;
  return [
    {
      message: "the datastore is locked already, by an administrator or a migration, and the upgrade would unlock it",
      remedy: `when the work that it was locked for is complete: kubectl patch ${information} --type=merge --patch '{"spec":{"datastoreReady":true}}'`,
    },
  ];
}

/** `Copies of 12 resources and 40 records of IPAM (31 addresses)` */
function summaryOf(records: Conversion["records"]): string {
  const ipam = records.filter(({ key }) => isIpam(key)).length;
  const blocks = records.filter(({ key }) => parseKey(key)?.kind === "block").length;
  const resources = counted(records.length - ipam, "resource");
  return `Copies of ${resources} and ${counted(ipam, "record")} of IPAM (${counted(blocks, "block")})`;
}

/** Whether the step "unlock" can do the rest. */
async function areCopied(site: StepSite, store: Datastore): Promise<boolean> {
  const present = await readRecords(store, IPAM_PREFIXES);
  const state = await copiesState(store, present);
  if (state !== "unknown") return state !== "incomplete";
  const { records } = await readFormer(site.objects);
  const areBlocksHere = records.every(({ key }) => parseKey(key)?.kind !== "block" || present.has(key));
  return areBlocksHere && (await useOfCopies(site, { state, present, records: async () => records })).isUsed;
}

/**
 * What others have used stays as it is, since people have edited it too; only what is missing is copied. That can only be if a
 * rollback could not be completed, or if the mark is lost.
 */
async function copyAll(site: StepSite, store: Datastore, records: Conversion["records"]): Promise<void> {
  const before = await readRecords(store, ALL_PREFIXES);
  const state = await copiesState(store, before);
  const { isUsed } = await useOfCopies(site, { state, present: before, records: async () => records });
  // Without a mark nobody knows whether IPAM was complete; with it, what is missing was released.
  const isMissing = (key: string) => !before.has(key) && (state === "unknown" || !isIpam(key));
  const isCopied = ({ key }: { readonly key: string }) => !isUsed || isMissing(key);
  const only = (all: ReadonlyMap<string, Entry>) => new Map([...all].filter(([key]) => isCopied({ key })));
  const lockTime = site.now();
  const mark = (value: string) => (isUsed ? withLockTime(value, lockTime) : withMarks(value, lockTime));
  const wanted = records
    .filter(isCopied)
    .map((record) => (isLockRecord(record) ? { ...record, value: mark(record.value) } : record));
  if (!isUsed && compareRecords(wanted, before).length > 0)
    await replaceCopiesMark(store, await copiesMark(store), INCOMPLETE);
  const progress = (line: string) => site.progress(line);
  await copyRecords(wanted, { store, prefixes: ALL_PREFIXES, present: only(before), progress });
  const present = await readRecords(store, ALL_PREFIXES);
  refuseDifferences(compareRecords(wanted, only(present)).map(describeDifference));
  if (!isUsed) await recordCopies(store, present);
}

function withMarks(value: string, now: Date): string {
  return withCopiesMark(withLockTime(value, now), INCOMPLETE);
}

/** With what was read before the copy: an ADD that had begun before the lock may have written since. */
function refuseDifferences(lines: readonly string[]): void {
  if (lines.length === 0) return;
  throw new PluginError(
    "resource-changed",
    `The copies differ from the former storage: ${shortened(lines).join("; ")}`,
    {
      details: "something changes them although the datastore is locked; stop it, and run upgrade apply again",
    },
  );
}

/** Those that were edited while others used them stay. Not of IPAM records, which the step "unlock" compares again: ADDs that had begun before the lock still write them. */
async function resourceDifferences(site: StepSite): Promise<readonly string[]> {
  const { records } = await readFormer(site.objects);
  const store = await site.openDatastore();
  const present = await readRecords(store, ALL_PREFIXES);
  const state = await copiesState(store, present);
  const { isUsed } = await useOfCopies(site, { state, present, records: async () => records });
  // Agents write their release into the lock's record if somebody unlocks it.
  const resources = records.filter((record) => !isIpam(record.key) && !isLockRecord(record));
  const only = new Map([...present].filter(([key]) => !isIpam(key)));
  const differences = compareRecords(resources, only).filter(({ kind }) => !isUsed || kind === "missing");
  return shortened(differences.map(describeDifference));
}

/** The lock goes last. Resources that are not copies stay. */
async function removeCopies(site: StepSite): Promise<void> {
  const store = await site.openDatastore();
  const guard = lockGuard(site, "both", "upgrade rollback");
  let mark: string | undefined;
  let present: ReadonlyMap<string, Entry>;
  do {
    if (await isLockedAgain(site, store)) await untilAddsHaveEnded(site);
    mark = await copiesMark(store);
    present = await readRecords(store, ALL_PREFIXES);
    const refusal = await whyNotRemoved(site, store, present);
    if (refusal !== undefined) throw refusal;
  } while (await guard.look());
  // From here on they differ from what was copied because of this.
  await replaceCopiesMark(store, mark, INCOMPLETE);
  const copies = [...present.values()].filter((entry) => isIpam(entry.key) || isCopy(entry));
  const inReverse = [...copies.filter((entry) => !isLockRecord(entry)).toReversed(), ...(await readLockRecords(store))];
  for (const { key, revision } of inReverse) {
    const written = await store.commit([{ kind: "delete", key, revision }]);
    if (!written.ok && written.reason !== "missing") {
      throw new PluginError("resource-changed", `Cannot delete the copy "${key}": another program has changed it`, {
        details: "run upgrade rollback again",
      });
    }
  }
}

/** Whether somebody had unlocked it since it was copied: agents of this release may have begun ADDs then. */
async function isLockedAgain({ notes }: StepSite, store: Datastore): Promise<boolean> {
  if ((await presentLock(store)) !== "locked" || (await copiesMark(store)) === INCOMPLETE) return false;
  return (await notes.read())["lockedSince"] !== (await lockTimeText(store));
}

async function lockTimeText(store: Datastore): Promise<string | undefined> {
  return (await lockedSince(store))?.toISOString();
}

/** Why the copies have to stay: addresses that only they have would be lost. */
async function whyNotRemoved(
  site: StepSite,
  store: Datastore,
  present: ReadonlyMap<string, Entry>,
): Promise<PluginError | undefined> {
  const state = await copiesState(store, present);
  const records = async () => (await readFormer(site.objects)).records;
  const { isUsed, addresses } = await useOfCopies(site, { state, present, records });
  if (!isUsed) return undefined;
  return addresses.length === 0 ? pastUnlock() : onlyInPresent(addresses);
}

function pastUnlock(): PluginError {
  return new PluginError(
    "resource-in-use",
    "Cannot go back to the former storage: the present one is unlocked, or was, so that addresses may have been assigned that the former one does not know",
    { details: ONWARD },
  );
}

/** The mark that would say who has assigned them is lost, or the step "unlock" was interrupted. */
function onlyInPresent(addresses: readonly string[]): PluginError {
  const count = `${counted(addresses.length, "address", "addresses")} (${shortened(addresses).join(", ")})`;
  return new PluginError(
    "resource-in-use",
    `Cannot go back to the former storage: the present one has ${count} that the former one does not know, and whether it is unlocked, or was, is not recorded any more`,
    { details: ONWARD },
  );
}

const ONWARD = "the upgrade cannot be undone any more; continue it with upgrade apply";
