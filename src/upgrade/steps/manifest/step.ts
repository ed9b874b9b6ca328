/** Rules 7 and 8: an installation from a manifest gets the objects of this release, with the user's edits. */
import { identity } from "../../../identity.ts";
import { ADMISSION_API } from "../../../release/admission/policy-objects.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { describeObject, groupPath, objectPath } from "../../../release/object-kinds.ts";
import { formatYaml } from "../../../yaml.ts";
import { restoreBackedUp } from "../../engine/restore-objects.ts";
import type { PlannedChange, PlanningSite, Step, StepPlan, StepSite } from "../../engine/step.ts";
import { guardedWait } from "../../former-storage/guard-lock.ts";
import { daemonSetOf, isFormer, PATHS, readLiveManifest } from "../../manifest-install/live-manifest.ts";
import { wantedManifest } from "../../manifest-install/plan-manifest.ts";
import type { WantedManifest, WantedSettings } from "../../manifest-install/wanted.ts";
import { planWrites, unwritten, writeObject } from "../../manifest-install/write-objects.ts";
import { waitForNodes } from "../../nodes/wait-for-nodes.ts";
import { comparedManifest } from "../../published/stock-manifest.ts";
import { areFormerControllersStopped, stopFormerControllers } from "./former-controllers.ts";
import { hasSettings, missingSettings, writeSettings } from "./write-settings.ts";

const NAME = "manifest";
/** The merged manifest, beside the plan and in the cluster. */
const MERGED = "manifest.yaml";

export const manifestStep: Step = {
  name: NAME,
  title: "Apply the manifest of this release with your edits",
  rule: 7,
  why: "The node agents and controllers of this release need its roles, settings and pods. What you had changed in the manifest or in the cluster is kept.",

  async plan(site): Promise<StepPlan | undefined> {
    const { method, version, datastore } = site.facts;
    if (method.kind !== "manifest") return undefined;
    const live = await readLiveManifest(site.objects, releaseObjects(site));
    const daemonSet = daemonSetOf(live);
    if (daemonSet === undefined) return undefined;
    const stock = isFormer(daemonSet)
      ? await comparedManifest(version, { datastore, network: method.network })
      : undefined;
    const wanted = wantedManifest({ ...site, live, daemonSet, stock });
    const changes = await planChanges(site, wanted, live.has(PATHS.formerControllers));
    if (changes.length === 0 && wanted.obstacles.length === 0) return undefined;
    return {
      step: NAME,
      changes,
      obstacles: wanted.obstacles,
      notes: [...wanted.notes, `The merged manifest is saved as ${MERGED} among the backups`],
      estimatedSeconds: 20,
      data: {
        objects: wanted.objects,
        settings: wanted.settings,
        usualSettings: wanted.usualSettings,
        formerDefaults: wanted.formerDefaults,
      },
    };
  },

  async remaining(site, plan) {
    const { objects, ...settings } = wantedOf(plan);
    const left = await unwritten(site.objects, objects);
    const fields = await withSettings(site, settings, (datastore) => missingSettings(datastore, settings));
    const areStopped = await areFormerControllersStopped(site.objects);
    return [
      ...left.map(({ object }) => `${describeObject(object)} is not as planned`),
      ...fields.map((field) => `NodeAgentConfiguration default: ${field} is not as planned`),
      ...(areStopped ? [] : ["The controllers of the earlier release still run"]),
    ];
  },

  async act(site, plan) {
    const { objects, ...settings } = wantedOf(plan);
    await site.backups.save(MERGED, objects.map(({ object }) => formatYaml(object)).join("---\n"));
    await withSettings(site, settings, async (datastore) => {
      await writeSettings(datastore, settings, { now: () => site.now(), uuid: () => crypto.randomUUID() });
      return [];
    });
    for (const wanted of objects) {
      if (isControllers(wanted.object)) await stopFormerControllers(site);
      const done = await writeObject(site.objects, wanted);
      if (done !== undefined) site.progress(`${describeObject(wanted.object)} ${done}`);
    }
  },

  /**
   * Policies of this release must not refuse what the earlier agents write: they go first. The controllers of this release
   * end next, then the objects are as they were, workloads last.
   */
  async rollback(site, plan) {
    const changed = plan.changes.flatMap(({ path }) => path ?? []);
    const policies = changed.filter(isPolicy);
    const paths = changed.filter((path) => !isPolicy(path));
    await restoreBackedUp(site, [
      ...policies.filter(isPolicyBinding),
      ...policies.filter((path) => !isPolicyBinding(path)),
    ]);
    const { objects } = wantedOf(plan);
    const controllers = objects.filter(({ object }) => isControllers(object)).map(({ object }) => objectPath(object));
    const isWorkload = (path: string) => /\/(daemonsets|deployments)\//.test(path);
    const others = paths.filter((path) => !controllers.includes(path));
    await restoreBackedUp(
      site,
      paths.filter((path) => controllers.includes(path)),
    );
    await restoreBackedUp(site, [
      ...others.filter((path) => !isWorkload(path) && isExisting(path, plan)),
      ...others.filter(isWorkload),
    ]);
    const agents = others.find((path) => path.includes("/daemonsets/"));
    if (agents !== undefined) await waitForNodes(site, agents, guardedWait(site, "upgrade rollback"));
    // Roles and settings that only pods of this release used.
    await restoreBackedUp(
      site,
      others.filter((path) => !isExisting(path, plan)),
    );
  },
};

function isPolicy(path: string): boolean {
  return path.startsWith(`${groupPath(ADMISSION_API)}/`);
}

function isPolicyBinding(path: string): boolean {
  return path.includes("/validatingadmissionpolicybindings/");
}

function isExisting(path: string, { changes }: StepPlan): boolean {
  return changes.some((each) => each.path === path && each.action !== "create");
}

function releaseObjects({ release, facts }: PlanningSite): readonly KubeObject[] {
  const { settings, components } = release.manifest({ datastore: facts.datastore, network: "own" });
  return [...settings, ...components];
}

async function planChanges(
  site: PlanningSite,
  { objects, settings, formerDefaults = {} }: WantedManifest,
  hasFormerControllers: boolean,
): Promise<readonly PlannedChange[]> {
  const changes = await planWrites(site.objects, objects);
  const shown = (fields: object) => Object.entries(fields).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  const fields = [...shown(settings), ...shown(formerDefaults).map((each) => `${each} unless it is set`)];
  const resource: readonly PlannedChange[] =
    fields.length === 0 ? [] : [{ action: "update", what: `NodeAgentConfiguration default (${fields.join(", ")})` }];
  const stopped: PlannedChange = {
    action: "update",
    what: "Deployment of the earlier release's controllers: no replicas",
    path: PATHS.formerControllers,
  };
  return [...resource, ...changes, ...(hasFormerControllers ? [stopped] : [])];
}

function isControllers({ kind, metadata }: KubeObject): boolean {
  return kind === "Deployment" && metadata.name === identity.controllers;
}

/** As `plan` has written it. */
function wantedOf({ data }: StepPlan): WantedSettings & Pick<WantedManifest, "objects"> {
  return data as unknown as WantedSettings & Pick<WantedManifest, "objects">;
}

async function withSettings(
  site: StepSite,
  settings: WantedSettings,
  work: (datastore: Awaited<ReturnType<StepSite["openDatastore"]>>) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  if (!hasSettings(settings)) return [];
  const datastore = await site.openDatastore();
  try {
    return await work(datastore);
  } finally {
    await datastore.close();
  }
}
