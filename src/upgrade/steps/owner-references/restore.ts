/** Adds references again that were removed, with the UIDs that their owners have now. */
import { API_VERSION } from "../../../identity.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import type { StepSite } from "../../engine/step.ts";
import { type ApiResource, resourcesIn } from "../../owned-objects/api-resources.ts";
import {
  describeOwned,
  isOfProduct,
  type OwnedObject,
  type OwnerReference,
  pathOf,
} from "../../owned-objects/owned-object.ts";
import { type Occasion, readRecorded } from "../../owned-objects/recorded.ts";
import { describeOwner, isLostRace } from "../../owned-objects/remove.ts";
import { decideRestoration, type OwnerState, presentNames, type Restoration } from "./restoration.ts";

type RestorationSite = Pick<StepSite, "objects" | "backups" | "progress">;

export interface PlannedRestoration {
  /** `ConfigMap default/settings: owner NetworkPolicy web` */
  readonly what: string;
  readonly path: string;
  readonly decision: Restoration;
  readonly decideAgain: () => Promise<Restoration>;
}

/** One for each reference that was recorded. Reads only. */
export async function planRestorations(
  { objects, backups }: Pick<RestorationSite, "objects" | "backups">,
  occasion: Occasion,
): Promise<readonly PlannedRestoration[]> {
  const recorded = await readRecorded(backups, occasion);
  if (recorded.length === 0) return [];
  const kinds = await productKinds(objects);
  const plans: PlannedRestoration[] = [];
  for (const object of recorded) {
    for (const reference of object.references) {
      const decide = async () => {
        const dependant = await readDependant(objects, kinds, object);
        const owner = await readOwner(objects, kinds, reference, object.namespace);
        return {
          path: dependant.path,
          decision: decideRestoration({ reference, uid: object.uid }, dependant.metadata, owner),
        };
      };
      const decideAgain = async () => (await decide()).decision;
      plans.push({
        what: `${describeOwned(object)}: owner ${describeOwner(reference)}`,
        ...(await decide()),
        decideAgain,
      });
    }
  }
  return plans;
}

const ATTEMPTS = 5;

/** Returns what was not restored, and why. */
export async function restoreOwnerReferences(site: RestorationSite, occasion: Occasion): Promise<readonly string[]> {
  const reports: string[] = [];
  for (const plan of await planRestorations(site, occasion)) {
    // An object may have several owners: the decision for the second one is made after the first is back.
    let decision = await plan.decideAgain();
    for (let attempt = 1; decision.kind === "add"; attempt++) {
      try {
        await site.objects.patchJson(plan.path, decision.operations);
        site.progress(`${plan.what} is set again`);
        break;
      } catch (failure) {
        if (!isLostRace(failure) || attempt === ATTEMPTS) throw failure;
        decision = await plan.decideAgain();
      }
    }
    if (decision.kind === "report") reports.push(reportOf(plan.what, decision.reason));
  }
  return reports;
}

function reportOf(what: string, reason: string): string {
  return `${what} is not set again: ${reason}`;
}

/** Kinds of the product's group that are served now. */
export async function productKinds(objects: ClusterObjects): Promise<ReadonlyMap<string, ApiResource>> {
  const root = `/apis/${API_VERSION}`;
  const [group = ""] = API_VERSION.split("/");
  const resources = resourcesIn(await objects.read(root), { group, apiVersion: API_VERSION, root });
  return new Map(resources.map((each) => [each.kind, each]));
}

/** An object of the product may have another name and another kind now. */
export async function readDependant(
  objects: ClusterObjects,
  kinds: ReadonlyMap<string, ApiResource>,
  object: OwnedObject,
): Promise<{ readonly path: string; readonly metadata: Fields | undefined }> {
  if (!isOfProduct(object.apiVersion))
    return { path: pathOf(object), metadata: metadataOf(await objects.read(pathOf(object))) };
  const found = await readProductObject(objects, kinds, object, object.namespace);
  return found ?? { path: pathOf(object), metadata: undefined };
}

/** An owner is in the namespace of its dependant, or in none. */
export async function readOwner(
  objects: ClusterObjects,
  kinds: ReadonlyMap<string, ApiResource>,
  reference: Pick<OwnerReference, "kind" | "name">,
  namespace: string | undefined,
): Promise<OwnerState | undefined> {
  const found = await readProductObject(objects, kinds, reference, namespace);
  return found === undefined
    ? undefined
    : { kind: found.kind, name: String(found.metadata["name"]), metadata: found.metadata };
}

async function readProductObject(
  objects: ClusterObjects,
  kinds: ReadonlyMap<string, ApiResource>,
  wanted: { readonly kind: string; readonly name: string },
  namespace: string | undefined,
) {
  for (const { kind, name } of presentNames(wanted)) {
    const resource = kinds.get(kind);
    if (resource === undefined) continue;
    const within = resource.isNamespaced && namespace !== undefined ? { namespace } : {};
    const path = pathOf({ apiVersion: resource.apiVersion, plural: resource.plural, ...within, name });
    const metadata = metadataOf(await objects.read(path));
    if (metadata !== undefined) return { kind, path, metadata };
  }
  return undefined;
}

function metadataOf(object: Fields | undefined): Fields | undefined {
  const metadata = object?.["metadata"];
  return isObject(metadata) ? metadata : undefined;
}
