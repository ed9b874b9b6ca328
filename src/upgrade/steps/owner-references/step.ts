/**
 * Rule 3, before the move: owner references to resources of the product are removed, because the owners get new UIDs and
 * the garbage collector deletes objects whose owner does not exist.
 */
import { identity } from "../../../identity.ts";
import type { PlanningSite, Step, StepPlan } from "../../engine/step.ts";
import { BrokenApi } from "../../owned-objects/api-resources.ts";
import { describeOwned, type FoundObject } from "../../owned-objects/owned-object.ts";
import { describeOwner, removeOwnerReferences } from "../../owned-objects/remove.ts";
import { findOwnedObjects } from "../../owned-objects/scan.ts";
import { willChangeUids } from "./restoration.ts";
import { restoreOwnerReferences } from "./restore.ts";

const NAME = "owner-references";

export const ownerReferencesStep: Step = {
  name: NAME,
  title: "Remove owner references to resources of the product",
  rule: 3,
  isTemporary: true,
  why: `resources of ${identity.apiGroup} get new UIDs: objects that they own would be deleted by the garbage collector`,
  async plan(site) {
    if (!willChangeUids(site.facts)) return undefined;
    try {
      return planOf(await findOwnedObjects(site.objects, site.options.ignoredGroups), site);
    } catch (failure) {
      if (!(failure instanceof BrokenApi)) throw failure;
      return { ...planOf([], site), obstacles: [{ message: failure.message, remedy: failure.details }] };
    }
  },
  async remaining({ objects, options, notes }) {
    // Afterwards there are references with the new UIDs.
    if ((await notes.read())["isDone"] === true) return [];
    const found = await findOwnedObjects(objects, options.ignoredGroups);
    return [
      ...found.map((each) => `${describeOwned(each)} is owned by ${ownersOf(each)}`),
      "the cluster has not been searched twice in a row without a finding",
    ];
  },
  async act(site) {
    await removeOwnerReferences(site);
    await site.notes.write({ isDone: true });
  },
  async rollback(site) {
    for (const occasion of ["before", "rollback"] as const) {
      for (const line of await restoreOwnerReferences(site, occasion)) site.progress(line);
    }
    await site.notes.write({});
  },
};

function planOf(found: readonly FoundObject[], { options }: PlanningSite): StepPlan {
  const ignored = options.ignoredGroups.map(
    (group) => `objects of API group "${group}" are not searched: they may be deleted`,
  );
  return {
    step: NAME,
    changes: found.map((each) => ({
      action: "update",
      what: `${describeOwned(each)}: without its owner ${ownersOf(each)} during the move`,
    })),
    obstacles: [],
    notes: [
      ...ignored,
      "the cluster is searched again right before the move: controllers that set such references have to pause until then",
    ],
    estimatedSeconds: 15 + Math.ceil(found.length / 20),
    data: {},
  };
}

function ownersOf({ references }: FoundObject): string {
  return references.map(describeOwner).join(", ");
}
