/**
 * Moves the resources of an earlier release to the present storage, which stays locked until all nodes have this release.
 *
 *   lock the former storage -> vendor.org/v3 is served from its definitions -> copy, the lock first -> compare
 *
 * Until the step "unlock" everything can be undone: the former objects stay as they are. On etcd both releases use the same
 * records, except for the settings of the node agent.
 */
import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { parseKey } from "../../model/keys.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import type { Obstacle } from "../facts.ts";
import { FORMER_API } from "../former-names.ts";
import { removeOwnerReferences } from "../owner-references/remove.ts";
import type { PlannedChange, PlanningSite, Step, StepPlan, StepSite } from "../step.ts";
import { compareRecords, describeDifference, isCopy, isIpam } from "../storage/compare.ts";
import type { Conversion } from "../storage/conversion.ts";
import { copyRecords } from "../storage/copy-records.ts";
import { copySettings, planSettings, remainingSettings, removeSettings } from "../storage/etcd-settings.ts";
import { lockGuard } from "../storage/guard-lock.ts";
import {
  FORMER_INFORMATION,
  formerLock,
  hasUnlockBegun,
  isLockRecord,
  presentLock,
  setFormerLock,
  withLockTime,
  writeCopiedDigest,
} from "../storage/lock.ts";
import { readFormer, unknownKinds } from "../storage/read-former.ts";
import { API_SERVICE, isServedByDefinitions, serveAggregated, serveDefinitions } from "../storage/served-api.ts";
import { ALL_PREFIXES, RESOURCE_PREFIXES, readRecords } from "../storage/stored-records.ts";
import { copiesState, recordCopies } from "../storage/used-copies.ts";

const NAME = "storage";
/** Lines of a message. */
const MOST_LINES = 20;

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
      ...((await copiesState(store)) === "untouched" ? await resourceDifferences(site) : ["not everything is copied"]),
    ];
  },
  async act(site) {
    if (site.facts.storage === "etcd") return copySettings(site);
    await setFormerLock(site.objects, "locked");
    // The copies have other UIDs: what refers to the former ones would be deleted.
    if (!(await isServedByDefinitions(site))) await removeOwnerReferences(site);
    await serveDefinitions(site);
    const { records, obstacles } = await readFormer(site.objects);
    const [first] = obstacles;
    if (first !== undefined) throw new PluginError("resource-invalid", first.message, { details: first.remedy });
    const now = site.now();
    const wanted = records.map((record) =>
      isLockRecord(record) ? { ...record, value: withLockTime(record.value, now) } : record,
    );
    const store = await site.openDatastore();
    // No agent of this release can have used it yet.
    await lockGuard(site, "both").look();
    await copyRecords(wanted, { store, prefixes: ALL_PREFIXES, progress: (line) => site.progress(line) });
    const present = await readRecords(store, ALL_PREFIXES);
    refuseDifferences(compareRecords(records, present).map(describeDifference));
    await recordCopies(store, present);
    site.progress(summaryOf(records));
  },
  async verify(site) {
    return site.facts.storage === "etcd" ? [] : resourceDifferences(site);
  },
  async rollbackObstacles(site) {
    const isMoved = site.facts.storage === "former" && (await isServedByDefinitions(site));
    // The step "unlock" says it itself.
    if (!isMoved || (await hasUnlockBegun(site.backups)) || !(await areCopiesUsed(site))) return [];
    const { message, details: remedy } = pastUnlock();
    return [{ message, remedy }];
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
    { action: "update", what: `ClusterInformation default of ${FORMER_API.group} (locked)`, path: FORMER_INFORMATION },
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

/** Not of IPAM records, which the step "unlock" compares again: ADDs that had begun before the lock still write them. */
async function resourceDifferences(site: StepSite): Promise<readonly string[]> {
  const { records } = await readFormer(site.objects);
  const present = await readRecords(await site.openDatastore(), RESOURCE_PREFIXES);
  const resources = records.filter(({ key }) => !isIpam(key));
  return shortened(compareRecords(resources, present).map(describeDifference));
}

function shortened(lines: readonly string[]): readonly string[] {
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES), `and ${lines.length - MOST_LINES} more`];
}

/** The lock goes last. Resources that are not copies stay. */
async function removeCopies(site: StepSite): Promise<void> {
  const store = await site.openDatastore();
  if ((await hasUnlockBegun(site.backups)) || (await areCopiesUsed(site))) throw pastUnlock();
  await lockGuard(site, "both").look();
  // From here on they differ from what was copied because of this.
  await writeCopiedDigest(store, undefined);
  const present = [...(await readRecords(store, ALL_PREFIXES)).values()];
  const copies = present.filter((entry) => isIpam(entry.key) || isCopy(entry));
  const inReverse = [...copies.filter((entry) => !isLockRecord(entry)).toReversed(), ...copies.filter(isLockRecord)];
  for (const { key, revision } of inReverse) {
    const written = await store.commit([{ kind: "delete", key, revision }]);
    if (!written.ok && written.reason !== "missing") {
      throw new PluginError("resource-changed", `Cannot delete the copy "${key}": another program has changed it`, {
        details: "run upgrade rollback again",
      });
    }
  }
}

/** Whether addresses were assigned or released in the present storage: the former one does not know them. */
async function areCopiesUsed(site: StepSite): Promise<boolean> {
  return (await copiesState(await site.openDatastore())) === "used";
}

function pastUnlock(): PluginError {
  return new PluginError(
    "resource-in-use",
    "Cannot go back to the former storage: the present one is unlocked, or was, so that addresses have been assigned that the former one does not know",
    { details: "the upgrade cannot be undone any more; continue it with upgrade apply" },
  );
}
