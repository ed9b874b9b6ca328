/**
 * Ends the lock of the present storage, once the nodes have this release: from here on addresses are assigned in it, and the
 * former one does not know them. An ADD that had begun before the former storage was locked may have written to it after the
 * copy, so IPAM is compared again, and corrected, later than any such ADD can end. Copies of resources that are gone by then
 * are made again; those that were changed since stay as they are.
 */
import type { Datastore, Entry } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { IPAM_CONFIGURATION_KEY } from "../../../model/keys.ts";
import type { Step, StepSite } from "../../engine/step.ts";
import { FORMER_API } from "../../former-names.ts";
import { compareRecords, describeDifference } from "../../former-storage/compare.ts";
import type { CopiedRecord } from "../../former-storage/conversion.ts";
import { copyRecords } from "../../former-storage/copy-records.ts";
import { lockGuard } from "../../former-storage/guard-lock.ts";
import {
  gainedAddresses,
  lateAddresses,
  recordShared,
  refuseLateAddresses,
} from "../../former-storage/late-addresses.ts";
import {
  formerLock,
  hasUnlockBegun,
  lockedSince,
  lockRevision,
  presentLock,
  UNLOCK_BEGUN,
  unlockPresent,
} from "../../former-storage/lock.ts";
import { readFormer } from "../../former-storage/read-former.ts";
import { ALL_PREFIXES, RESOURCE_PREFIXES, readRecords } from "../../former-storage/stored-records.ts";
import { rolloutPace, rolloutSeconds } from "../../nodes/pace.ts";
import { lockSecondsOf, untilAddsHaveEnded } from "../storage/late-adds.ts";
import { isServedByDefinitions } from "../storage/served-api.ts";
import {
  beginCorrection,
  type CopiesState,
  copiesState,
  isAssignment,
  recordCopies,
  useOfCopies,
} from "../storage/used-copies.ts";

const NAME = "unlock";

export const unlockStep: Step = {
  name: NAME,
  title: "Unlock the datastore",
  rule: 8,
  isPointOfNoReturn: true,
  why: "The nodes have this release and use the present storage: pods can be started and removed again.",
  async plan(site) {
    const { facts, options } = site;
    if (facts.storage !== "former") return undefined;
    const updating = rolloutSeconds(facts.nodes.length, rolloutPace(site, facts.nodes.length, undefined));
    return {
      step: NAME,
      changes: [{ action: "update", what: "ClusterInformation default (unlocked)" }],
      obstacles: [],
      notes: [],
      cannotBeUndone: "from here on the former storage is out of date, so the move cannot be undone any more",
      estimatedSeconds: 5 + Math.max(0, lockSecondsOf(options) - updating),
      data: {},
    };
  },
  async remaining(site) {
    const store = await site.openDatastore();
    if ((await presentLock(store)) !== "unlocked") return ["the datastore is locked"];
    if (!(await hasUnlockBegun(site.backups))) return ["somebody else has unlocked the datastore: compare the copies"];
    return (await lockedSince(store)) === undefined ? [] : ["the datastore is still marked as locked by the upgrade"];
  },
  async act(site) {
    const store = await site.openDatastore();
    if ((await presentLock(store)) === "unlocked" && (await hasUnlockBegun(site.backups))) return unlockPresent(store);
    await requireMoved(site);
    const guard = lockGuard(site, "both");
    await guard.look();
    do await untilAddsHaveEnded(site);
    while (await guard.look());
    await settleCopies(site, store);
    await site.backups.save(UNLOCK_BEGUN, site.now().toISOString());
    await unlockPresent(store);
  },
  /** As long as no aggregated API hides the present storage, the step "storage" looks at it. */
  async rollbackObstacles(site) {
    if ((await isServedByDefinitions(site)) || !(await hasUnlockBegun(site.backups))) return [];
    return [
      {
        message:
          "the present storage is unlocked, or was, so that addresses may have been assigned that the former one does not know",
        remedy: "continue the upgrade with upgrade apply",
      },
    ];
  },
};

/** Addresses that were assigned in the present storage already are kept, whatever the former one says. */
async function settleCopies(site: StepSite, store: Datastore): Promise<void> {
  const { records } = await readFormer(site.objects);
  const present = await readRecords(store, ALL_PREFIXES);
  const lost = records.filter(({ key }) => !isAssignment(key) && !present.has(key));
  for (const { what } of lost) site.progress(`${what} was deleted since it was copied, and is copied again`);
  const state = await copiesState(store, present);
  const { isUsed } = await useOfCopies(site, { state, present, records: async () => records });
  if (!isUsed || (await isOwnCorrection(site, store, state))) {
    await correctCopies([...lost, ...records.filter(({ key }) => isAssignment(key))], { site, store, present });
    await recordShared(site.backups, records, []);
    return;
  }
  site.progress(
    "Somebody has written IPAM records in the present storage although it was locked: they stay as they are",
  );
  const late = lateAddresses(records, present);
  const isRecorded = await hasUnlockBegun(site.backups);
  await refuseLateAddresses(site.objects, isRecorded ? await gainedAddresses(site, late) : late);
  await copyAgain(lost, { site, store, present: new Map(), prefixes: SETTING_PREFIXES });
  await recordShared(site.backups, records, late);
}

/** What this step had begun to write when it was interrupted is not somebody else's, if nobody has written the lock since. */
async function isOwnCorrection({ notes }: StepSite, store: Datastore, state: CopiesState): Promise<boolean> {
  const begun = (await notes.read())["copying"];
  return state === "being-corrected" && begun !== undefined && begun === (await lockRevision(store));
}

interface CopiesAtHand {
  readonly site: StepSite;
  readonly store: Datastore;
  readonly present: ReadonlyMap<string, Entry>;
}

async function correctCopies(wanted: readonly CopiedRecord[], copies: CopiesAtHand): Promise<void> {
  const { site, store } = copies;
  const present = withoutOthers(copies.present, wanted);
  if (compareRecords(wanted, present).length > 0) {
    await beginCorrection(store);
    await site.notes.write({ copying: await lockRevision(store) });
  }
  await recordCopies(store, await copyAgain(wanted, { ...copies, present, prefixes: ALL_PREFIXES }));
}

const SETTING_PREFIXES = [...RESOURCE_PREFIXES, IPAM_CONFIGURATION_KEY];

/** Settings that are not copied again stay, whatever the former storage says. */
function withoutOthers(
  present: ReadonlyMap<string, Entry>,
  wanted: readonly CopiedRecord[],
): ReadonlyMap<string, Entry> {
  const keys = new Set(wanted.map(({ key }) => key));
  return new Map([...present].filter(([key]) => keys.has(key) || isAssignment(key)));
}

/** Returns the records as they are then. */
async function copyAgain(
  wanted: readonly CopiedRecord[],
  { site, ...copies }: CopiesAtHand & { readonly prefixes: readonly string[] },
): Promise<ReadonlyMap<string, Entry>> {
  const { store, prefixes } = copies;
  await copyRecords(wanted, { ...copies, progress: (line) => site.progress(line) });
  const copied = await readRecords(store, prefixes);
  const left = compareRecords(wanted, withoutOthers(copied, wanted)).map(describeDifference);
  if (left.length === 0) return copied;
  throw new PluginError(
    "resource-changed",
    `Cannot unlock the datastore: the copies differ from the former storage: ${left.slice(0, 5).join("; ")}`,
    {
      details: `something deletes or changes them although the datastore is locked; stop it, or delete the resource of ${FORMER_API.group} too, and run upgrade apply again`,
    },
  );
}

async function requireMoved(site: StepSite): Promise<void> {
  if ((await isServedByDefinitions(site)) && (await formerLock(site.objects)) !== "absent") return;
  throw new PluginError("resource-in-use", "Cannot unlock the datastore: the former storage is in use", {
    details: 'the step "storage" was undone; run upgrade rollback, or make a new plan',
  });
}
