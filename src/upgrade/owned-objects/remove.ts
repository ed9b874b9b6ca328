/**
 * Removes owner references to the product's group, until two searches in a row find none: a controller that sets them again
 * is named. Every reference is recorded before it is removed.
 */
import { PluginError } from "../../errors.ts";
import type { StepSite } from "../engine/step.ts";
import { describeOwned, type FoundObject, type OwnedObject, ownedKey, pathOf } from "./owned-object.ts";
import { type Occasion, record } from "./recorded.ts";
import { findOwnedObjects } from "./scan.ts";

export type RemovalSite = Pick<StepSite, "objects" | "options" | "backups" | "progress" | "wait">;

interface Removal {
  readonly occasion: Occasion;
  /** How a found object is recorded. */
  readonly recorded?: (found: FoundObject) => Promise<OwnedObject>;
}

const CLEAN_SEARCHES = 2;
/** A controller that reacts to a change does so within this time; one that works periodically is seen by the last search. */
const PAUSE_MILLISECONDS = 3_000;
/** So often a reference may appear again before the upgrade stops. */
const RETURNS = 2;

/** Throws `try-again-later` with the names of controllers that set references again. */
export async function removeOwnerReferences(
  site: RemovalSite,
  { occasion, recorded = async (found) => found }: Removal = { occasion: "before" },
): Promise<void> {
  const attempts = new Map<string, number>();
  for (let clean = 0; clean < CLEAN_SEARCHES; ) {
    const found = await findOwnedObjects(site.objects, site.options.ignoredGroups);
    if (found.length === 0) {
      clean++;
      if (clean < CLEAN_SEARCHES) await site.wait(PAUSE_MILLISECONDS);
      continue;
    }
    clean = 0;
    refusePersistent(found.filter((each) => (attempts.get(ownedKey(each)) ?? 0) > RETURNS));
    await record(site.backups, occasion, await Promise.all(found.map(recorded)));
    for (const each of found) {
      const attempt = (attempts.get(ownedKey(each)) ?? 0) + 1;
      attempts.set(ownedKey(each), attempt);
      await removeFrom(site, each).catch((failure: unknown) => {
        // The next search finds it again, as it is then.
        if (!isLostRace(failure) || attempt > RETURNS) throw failure;
      });
    }
  }
}

/** Throws a lost race if the object and its references are not those that were found. */
async function removeFrom({ objects, progress }: RemovalSite, found: FoundObject): Promise<void> {
  const operations = [
    { op: "test", path: "/metadata/uid", value: found.uid },
    // From the last to the first, so that positions stay valid.
    ...found.positions.toReversed().flatMap((position, index) => {
      const path = `/metadata/ownerReferences/${position}`;
      return [
        { op: "test", path: `${path}/uid`, value: found.references.at(-1 - index)?.uid },
        { op: "remove", path },
      ];
    }),
  ];
  await objects.patchJson(pathOf(found), operations);
  progress(`${describeOwned(found)}: removed the reference to ${found.references.map(describeOwner).join(", ")}`);
}

export function isLostRace(failure: unknown): boolean {
  return failure instanceof PluginError && ["resource-invalid", "resource-changed"].includes(failure.kind);
}

export function describeOwner({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`;
}

function refusePersistent(persistent: readonly FoundObject[]): void {
  if (persistent.length === 0) return;
  const lines = persistent.map((each) => {
    const by = each.managers.length === 0 ? "an unknown program" : each.managers.map((name) => `"${name}"`).join(", ");
    return `${describeOwned(each)} by ${by}`;
  });
  throw new PluginError("try-again-later", `Cannot remove owner references: they are set again: ${lines.join("; ")}`, {
    details: "pause these controllers until the upgrade is done, for example by scaling them to 0 replicas",
  });
}
