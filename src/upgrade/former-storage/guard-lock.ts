/**
 * Between the steps "storage" and "unlock" the lock belongs to the upgrade. If somebody else ends it, it is locked again at
 * once: otherwise agents of both releases could assign the same addresses, each in its own storage.
 */
import { PluginError } from "../../errors.ts";
import type { RunCommand, StepSite } from "../engine/step.ts";
import { FORMER_API } from "../former-names.ts";
import { formerLock, lockPresentAgain, presentLock, setFormerLock } from "./lock.ts";

/** A program does it, not a person. */
const MOST_TIMES = 5;

type GuardedSite = Pick<StepSite, "objects" | "openDatastore" | "progress" | "now">;

/** Which storages must be locked: both until the step "unlock", then the former one. */
export type Guarded = "both" | "former";

export interface LockGuard {
  /** Returns whether something had to be locked again. */
  look(): Promise<boolean>;
}

export function lockGuard(site: GuardedSite, guarded: Guarded, command: RunCommand = "upgrade apply"): LockGuard {
  let times = 0;
  return {
    async look() {
      const unlocked = await unlockedStorages(site, guarded);
      if (unlocked.length === 0) return false;
      times += 1;
      if (guarded === "both") await lockPresentAgain(await site.openDatastore(), site.now());
      if (unlocked.includes(FORMER)) await setFormerLock(site.objects, "locked");
      if (times > MOST_TIMES) throw unlockedAgain(unlocked, command);
      site.progress(`Somebody else has unlocked ${unlocked.join(" and ")}: locked again. ${ADVICE}`);
      return true;
    },
  };
}

/** For a wait between the two steps; does nothing if no storage moves. */
export function guardedWait(
  site: GuardedSite & Pick<StepSite, "facts">,
  command: RunCommand,
): { readonly command: RunCommand; readonly onLook?: () => Promise<boolean> } {
  if (site.facts.storage !== "former") return { command };
  const guard = lockGuard(site, "both", command);
  return { command, onLook: () => guard.look() };
}

const PRESENT = "the datastore";
const FORMER = `the former storage (${FORMER_API.group})`;
const ADVICE = "Do not unlock it while the upgrade runs: addresses could be assigned twice";

async function unlockedStorages({ objects, openDatastore }: GuardedSite, guarded: Guarded): Promise<readonly string[]> {
  const isPresentUnlocked = guarded === "both" && (await presentLock(await openDatastore())) === "unlocked";
  return [...(isPresentUnlocked ? [PRESENT] : []), ...((await formerLock(objects)) === "unlocked" ? [FORMER] : [])];
}

function unlockedAgain(unlocked: readonly string[], command: RunCommand): PluginError {
  return new PluginError(
    "resource-in-use",
    `Something unlocks ${unlocked.join(" and ")} again and again, ${MOST_TIMES} times by now`,
    {
      details: `stop the program that writes datastoreReady of the ClusterInformation (its managedFields name it), and run ${command} again`,
    },
  );
}
