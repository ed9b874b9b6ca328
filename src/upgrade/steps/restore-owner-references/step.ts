/** Rule 3, after the move: the references that were removed are added again, with the new UIDs of their owners. */

import type { Step, StepSite } from "../../engine/step.ts";
import { describeOwned, type FoundObject, isOfProduct, type OwnedObject } from "../../owned-objects/owned-object.ts";
import { removeOwnerReferences } from "../../owned-objects/remove.ts";
import { findOwnedObjects } from "../../owned-objects/scan.ts";
import { formerUidOf, willChangeUids } from "../owner-references/restoration.ts";
import {
  planRestorations,
  productKinds,
  readDependant,
  readOwner,
  restoreOwnerReferences,
} from "../owner-references/restore.ts";

const NAME = "restore-owner-references";

export const restoreOwnerReferencesStep: Step = {
  name: NAME,
  title: "Add owner references again, with the new UIDs",
  rule: 3,
  why: "objects that the product's resources own have to go when their owner is deleted, as before",
  async plan({ facts, objects, options }) {
    if (!willChangeUids(facts)) return undefined;
    // A broken API is an obstacle of the step that removes them.
    const found = await findOwnedObjects(objects, options.ignoredGroups).catch(() => []);
    return {
      step: NAME,
      changes: found.map((each) => ({
        action: "update",
        what: `${describeOwned(each)}: owned again`,
        isUnverified: true,
      })),
      obstacles: [],
      notes: ["references to owners that are created again meanwhile are reported, not added"],
      estimatedSeconds: 5 + Math.ceil(found.length / 20),
      data: {},
    };
  },
  async remaining(site) {
    // It is always carried out, so that a rollback removes references that are set with the new UIDs from now on.
    const isDone = (await site.notes.read())["reports"] !== undefined;
    const plans = await planRestorations(site, "before");
    const missing = plans.filter(({ decision }) => decision.kind === "add").map(({ what }) => `${what} is not set yet`);
    return isDone ? missing : [...missing, "references that were removed have not been looked at"];
  },
  async act(site) {
    const reports = await restoreOwnerReferences(site, "before");
    for (const line of reports) site.progress(line);
    await site.notes.write({ reports });
  },
  async rollback(site) {
    const kinds = await productKinds(site.objects);
    const recorded = (found: FoundObject) => withFormerUids(site, kinds, found);
    await removeOwnerReferences(site, { occasion: "rollback", recorded });
  },
};

/** Before the storage goes back: references that were set since the upgrade are recorded with the UIDs that come back. */
async function withFormerUids(
  { objects }: StepSite,
  kinds: Awaited<ReturnType<typeof productKinds>>,
  found: FoundObject,
): Promise<OwnedObject> {
  const references = await Promise.all(
    found.references.map(async (reference) => {
      const owner = await readOwner(objects, kinds, reference, found.namespace);
      const former = owner?.metadata["uid"] === reference.uid ? formerUidOf(owner.metadata) : undefined;
      return former === undefined ? reference : { ...reference, uid: former };
    }),
  );
  const uid = isOfProduct(found.apiVersion)
    ? formerUidOf((await readDependant(objects, kinds, found)).metadata ?? {})
    : undefined;
  return { ...found, references, uid: uid ?? found.uid };
}
