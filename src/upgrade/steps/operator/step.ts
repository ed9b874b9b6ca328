/** Rule 6: the operator's manifest of this release, applied on the server with forced conflicts. */
import { identity } from "../../../identity.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { describeObject, objectPath } from "../../../release/object-kinds.ts";
import { applyForced, planForced, unapplied } from "../../engine/apply-forced.ts";
import type { PlannedChange, PlanningSite, Step } from "../../engine/step.ts";
import {
  OPERATOR_DEPLOYMENT,
  planFormerOperator,
  remainingOfFormerOperator,
  replaceFormerOperator,
} from "../../operator-install/former-operator.ts";
import { effectiveInstallation, operatorFor, poolNotes } from "../../operator-install/operator-objects.ts";
import { operatorWaitsFor, untilNone } from "../../operator-install/operator-rollout.ts";
import { restoreOperator } from "../../operator-install/restore-operator.ts";

export const operatorStep: Step = {
  name: "operator",
  title: "Apply the operator",
  rule: 6,
  why: "The operator replaces the components by those of its own release.",
  async plan(site) {
    if (site.facts.method.kind !== "operator") return undefined;
    const former = await planFormerOperator(site);
    const effective = await effectiveInstallation(site);
    const isKnown = "installation" in effective;
    const changes = [...former.changes, ...(await planObjects(site, await objectsOf(site), former.changes))];
    if (changes.length === 0 && (await operatorWaitsFor(site.objects)) === undefined) return undefined;
    const pools = isKnown ? poolNotes(effective.installation, effective.pools) : { notes: [], obstacles: [] };
    const invalid = former.obstacles.length > 0 || isKnown ? [] : effective.problems;
    return {
      step: this.name,
      changes,
      obstacles: [...former.obstacles, ...invalid, ...pools.obstacles],
      notes: [...former.notes, ...pools.notes],
      estimatedSeconds: 60,
      data: {},
    };
  },
  async remaining(site) {
    const missing = await unapplied(site.objects, await objectsOf(site));
    const waits = await operatorWaitsFor(site.objects);
    return [
      ...(await remainingOfFormerOperator(site)),
      ...missing.map((object) => `apply ${describeObject(object)}`),
      ...(waits === undefined ? [] : [waits]),
    ];
  },
  async act(site) {
    await replaceFormerOperator(site);
    await applyForced(site.objects, await objectsOf(site));
    site.progress(`the operator ${site.release.version} is applied`);
    await untilNone(site, "Waiting for the operator", () => operatorWaitsFor(site.objects));
  },
  rollback: (site, plan) => restoreOperator(site, plan.changes),
};

async function objectsOf(site: PlanningSite): Promise<readonly KubeObject[]> {
  const effective = await effectiveInstallation(site);
  return operatorFor(site.release, "installation" in effective ? effective.installation : undefined);
}

/** One that is deleted first cannot be tried. */
async function planObjects(
  { objects }: PlanningSite,
  wanted: readonly KubeObject[],
  former: readonly PlannedChange[],
): Promise<readonly PlannedChange[]> {
  const isReplaced = former.some(({ action, path }) => action === "delete" && path === OPERATOR_DEPLOYMENT);
  const tried = wanted.filter((object) => !isReplaced || objectPath(object) !== OPERATOR_DEPLOYMENT);
  const created: PlannedChange = {
    action: "create",
    what: `Deployment ${identity.operator}/${identity.operator}`,
    isUnverified: true,
  };
  return [...(await planForced(objects, tried)), ...(isReplaced ? [created] : [])];
}
