/**
 * Ends the lock of the present storage, once the nodes have this release: from here on addresses are assigned in it, and the
 * former one does not know them. An ADD that had begun before the former storage was locked may have written to it after the
 * copy, so IPAM is compared again, and corrected, later than any such ADD can end. Copies of resources that are gone by then
 * are made again; those that were changed since stay as they are.
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { FORMER_API } from "../former-names.ts";
import type { UpgradeOptions } from "../options.ts";
import { rolloutPace, rolloutSeconds } from "../rollout/pace.ts";
import type { Step, StepSite } from "../step.ts";
import { compareRecords, describeDifference, isIpam } from "../storage/compare.ts";
import type { CopiedRecord } from "../storage/conversion.ts";
import { copyRecords } from "../storage/copy-records.ts";
import { lockGuard } from "../storage/guard-lock.ts";
import {
  formerLock,
  hasUnlockBegun,
  lockedSince,
  lockRevision,
  presentLock,
  UNLOCK_BEGUN,
  unlockPresent,
} from "../storage/lock.ts";
import { readFormer } from "../storage/read-former.ts";
import { isServedByDefinitions } from "../storage/served-api.ts";
import { ALL_PREFIXES, RESOURCE_PREFIXES, readRecords } from "../storage/stored-records.ts";
import { copiesState, lateAddresses, refuseLateAddresses } from "../storage/used-copies.ts";

const NAME = "unlock";
/** The kubelet ends an ADD after two minutes. */
const LONGEST_ADD_SECONDS = 130;

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
  async rollbackObstacles(site) {
    if (!(await hasUnlockBegun(site.backups)) && !(await isUnlocked(site))) return [];
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
  const revision = await lockRevision(store);
  const { records } = await readFormer(site.objects);
  const present = await readRecords(store, ALL_PREFIXES);
  const lost = records.filter(({ key }) => !isIpam(key) && !present.has(key));
  for (const { what } of lost) site.progress(`${what} was deleted since it was copied, and is copied again`);
  // What this step had begun to copy when it was interrupted is not somebody else's.
  const isOwn = revision !== undefined && (await site.notes.read())["copying"] === revision;
  if (isOwn || (await copiesState(store, present)) === "untouched") {
    await site.notes.write({ copying: revision });
    const ipam = records.filter(({ key }) => isIpam(key));
    await copyAgain([...lost, ...ipam], { site, store, present, prefixes: ALL_PREFIXES });
    return;
  }
  site.progress(
    "Somebody has written IPAM records in the present storage although it was locked: they stay as they are",
  );
  await refuseLateAddresses(site.objects, lateAddresses(records, present));
  const resources = new Map([...present].filter(([key]) => !isIpam(key)));
  await copyAgain(lost, { site, store, present: resources, prefixes: RESOURCE_PREFIXES });
}

interface CopiedAgain {
  readonly site: StepSite;
  readonly store: Datastore;
  readonly prefixes: readonly string[];
  readonly present: ReadonlyMap<string, Entry>;
}

async function copyAgain(wanted: readonly CopiedRecord[], { site, ...means }: CopiedAgain): Promise<void> {
  const { store, prefixes } = means;
  await copyRecords(wanted, { ...means, progress: (line) => site.progress(line) });
  const left = compareRecords(wanted, await readRecords(store, prefixes)).map(describeDifference);
  if (left.length === 0) return;
  throw new PluginError(
    "resource-changed",
    `Cannot unlock the datastore: the copies differ from the former storage: ${left.slice(0, 5).join("; ")}`,
    {
      details: `something deletes or changes them although the datastore is locked; stop it, or delete the resource of ${FORMER_API.group} too, and run upgrade apply again`,
    },
  );
}

/** The present storage can only be looked at as long as no aggregated API hides it. */
async function isUnlocked(site: StepSite): Promise<boolean> {
  if (!(await isServedByDefinitions(site))) return hasUnlockBegun(site.backups);
  return (await presentLock(await site.openDatastore())) === "unlocked";
}

async function requireMoved(site: StepSite): Promise<void> {
  if ((await isServedByDefinitions(site)) && (await formerLock(site.objects)) !== "absent") return;
  throw new PluginError("resource-in-use", "Cannot unlock the datastore: the former storage is in use", {
    details: 'the step "storage" was undone; run upgrade rollback, or make a new plan',
  });
}

async function untilAddsHaveEnded(site: StepSite): Promise<void> {
  const since = await lockedSince(await site.openDatastore());
  const left = (since?.getTime() ?? site.now().getTime()) + lockSecondsOf(site.options) * 1_000 - site.now().getTime();
  if (left <= 0) return;
  site.progress(`Waiting ${Math.ceil(left / 1_000)} s until every ADD that had begun before the lock has ended`);
  await site.wait(left);
}

function lockSecondsOf({ lockSeconds = LONGEST_ADD_SECONDS }: UpgradeOptions): number {
  return lockSeconds;
}
