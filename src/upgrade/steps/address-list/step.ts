/** Rule 7: pods that choose addresses today can be created again under the admission policies of this release. */
import { identity } from "../../../identity.ts";
import { ADDRESS_LIST, addressListObject } from "../../../release/admission/address-policies.ts";
import { type ListEntries, withoutListed } from "../../../release/admission/annotation-users.ts";
import { describeObject, objectPath } from "../../../release/object-kinds.ts";
import { addEntries, missingEntries } from "../../../upkeep/address-list.ts";
import type { Step, StepPlan } from "../../engine/step.ts";
import { usableAnnotations } from "../../live-network-configs.ts";

const LIST = addressListObject();

export const addressListStep: Step = {
  name: "address-list",
  title: "Enter the namespaces that choose addresses today into the list",
  rule: 7,
  why: "From this release on, the API server refuses pods that choose addresses which IPAM does not check, unless the list permits it. Pods that do so today can be created again.",
  // The list is the administrator's: entries may be removed later.
  isTemporary: true,

  async plan({ objects, facts }): Promise<StepPlan | undefined> {
    const entries = await missingEntries(objects, await usableAnnotations(objects, facts));
    if (Object.keys(entries).length === 0) return undefined;
    const isNew = (await objects.read(objectPath(LIST))) === undefined;
    return {
      step: this.name,
      changes: [
        {
          action: isNew ? "create" : "update",
          what: describeObject(LIST),
          path: objectPath(LIST),
          diff: linesOf(entries).join("\n"),
        },
      ],
      obstacles: [],
      notes: [
        `Every pod of these namespaces may go on choosing addresses: remove those that should not with "kubectl edit configmap ${ADDRESS_LIST.name} --namespace ${ADDRESS_LIST.namespace}"`,
      ],
      estimatedSeconds: 1,
      data: { entries },
    };
  },

  async remaining({ objects }, plan) {
    const missing = withoutListed(entriesOf(plan), await objects.read(objectPath(LIST)));
    return Object.entries(missing).flatMap(([key, lines]) =>
      lines.map((line) => `${key} of ${describeObject(LIST)} lacks ${line}`),
    );
  },

  async act({ objects, progress }, plan) {
    await addEntries(objects, entriesOf(plan));
    progress(`${describeObject(LIST)} permits the namespaces that choose addresses today`);
  },
};

function linesOf(entries: ListEntries): readonly string[] {
  return Object.entries(entries).flatMap(([key, lines]) => [
    `   ${key}: # ${identity.annotationPrefix}${key}`,
    ...lines.map((line) => `+    ${line}`),
  ]);
}

/** As `plan` has written it. */
function entriesOf({ data }: StepPlan): ListEntries {
  return (data as unknown as { readonly entries: ListEntries }).entries;
}
