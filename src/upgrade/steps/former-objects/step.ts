/** Rules 6 and 7: what earlier releases consisted of and this one does not is removed, after every node is new. */
import { FORMER_SIDECAR, identity } from "../../../identity.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { describeObject, objectPath } from "../../../release/object-kinds.ts";
import { readObjects } from "../../engine/observe-objects.ts";
import { readBackedUp, restoreObject } from "../../engine/restore-objects.ts";
import type { PlannedChange, PlanningSite, Step, StepPlan } from "../../engine/step.ts";
import { FORMER_API, FORMER_API_SERVER, FORMER_CONTROLLERS } from "../../former-names.ts";
import { daemonSetOf, isFormer, PATHS, readLiveManifest } from "../../manifest-install/live-manifest.ts";
import { targetNetwork } from "../../manifest-install/plan-manifest.ts";
import type { WantedObject } from "../../manifest-install/wanted.ts";
import { unwritten, writeObject } from "../../manifest-install/write-objects.ts";
import { fieldsIn, itemsIn, textIn } from "../../object-fields.ts";
import { FORMER_CSI, FORMER_SETTINGS, type FormerObject, formerObjects } from "../../prune-list.ts";
import { comparedManifest } from "../../published/stock-manifest.ts";
import { finalRoles } from "./roles.ts";
import { isOfProduct, provingPaths } from "./shared-names.ts";

const NAME = "former-objects";
const API_SERVICE = `/apis/apiregistration.k8s.io/v1/apiservices/${FORMER_API_SERVER.apiService}`;
/** With it, the API server keeps the APIService as its definitions are. */
const MANAGED = "kube-aggregator.kubernetes.io/automanaged";
const SETTINGS = [PATHS.settings, PATHS.canalSettings];

export const formerObjectsStep: Step = {
  name: NAME,
  title: "Remove what only the earlier release used",
  rule: 7,
  why: "Every node runs this release: the API server, Typha and controllers of the earlier one, their roles and settings have no use any more.",

  async plan(site): Promise<StepPlan | undefined> {
    const { objects, facts } = site;
    const { own, foreign, needed } = await findFormer(site);
    const deletions = own.map(({ what, path }): PlannedChange => ({ action: "delete", what, path }));
    const settings = await settingsToRemove(objects);
    const removals = settings.map(
      ({ path, keys }): PlannedChange => ({
        action: "update",
        what: `ConfigMap ${nameIn(path)}: without ${keys.join(", ")}`,
        path,
      }),
    );
    const roles = await planRoles(site);
    const narrowed = roles.map(
      ({ object }): PlannedChange => ({
        action: "update",
        what: `${describeObject(object)}: without permissions of the earlier release`,
        path: objectPath(object),
      }),
    );
    const hasApiService = (await objects.read(API_SERVICE)) !== undefined && facts.storage === "former";
    const handedOver: readonly PlannedChange[] = hasApiService
      ? [{ action: "update", what: `APIService ${FORMER_API_SERVER.apiService}: managed by the API server` }]
      : [];
    const changes = [...handedOver, ...deletions, ...removals, ...narrowed];
    if (changes.length === 0 && needed.length === 0) return undefined;
    return {
      step: NAME,
      changes,
      obstacles: [],
      notes: [
        ...foreign.map(keptNote),
        ...neededNotes(needed),
        ...(facts.storage === "former" ? [definitionsNote()] : []),
      ],
      estimatedSeconds: 10,
      data: { roles },
    };
  },

  async remaining(site, plan) {
    const { objects } = site;
    const needed = await neededNow(objects, plan);
    const left = (await existing(objects, deletionsOf(plan))).filter(({ what }) => !needed.includes(what));
    const settings = await settingsToRemove(objects);
    const roles = await unwritten(objects, rolesOf(plan));
    return [
      ...left.map(({ what }) => `${what} exists`),
      ...settings.map(({ path, keys }) => `ConfigMap ${nameIn(path)} has ${keys.join(", ")}`),
      ...roles.map(({ object }) => `${describeObject(object)} has permissions of the earlier release`),
      ...((await isUnmanaged(objects))
        ? [`APIService ${FORMER_API_SERVER.apiService} is not managed by the API server`]
        : []),
    ];
  },

  async act(site, plan) {
    const { objects } = site;
    await handOverApiService(objects);
    for (const { path, keys } of await settingsToRemove(objects)) {
      await objects.patch(path, { data: Object.fromEntries(keys.map((key) => [key, null])) });
    }
    for (const role of rolesOf(plan)) await writeObject(objects, role);
    const needed = await neededNow(objects, plan);
    for (const what of needed) site.progress(`${what} is kept: pods have volumes of it since the plan was made`);
    for (const { path, what } of deletionsOf(plan)) {
      if (needed.includes(what)) continue;
      const live = await objects.read(path);
      if (live === undefined || fieldsIn(live, "metadata")["deletionTimestamp"] !== undefined) continue;
      const { uid } = fieldsIn(live, "metadata");
      await objects.remove(path, { propagationPolicy: "Background", preconditions: { uid } });
      site.progress(`${what} is deleted`);
    }
    await untilGone(site, plan, needed);
  },

  /** The controllers come back without replicas: those of this release still run. */
  async rollback(site, plan) {
    const { objects, backups } = site;
    const saved = await readBackedUp(backups);
    const paths = plan.changes.flatMap(({ path }) => path ?? []).toReversed();
    for (const path of paths) {
      const before = saved[path];
      if (before === undefined) continue;
      await restoreObject(
        objects,
        path,
        path.endsWith(`/deployments/${FORMER_CONTROLLERS}`) && before !== null ? stopped(before) : before,
      );
    }
  },
};

interface FoundObjects {
  readonly own: readonly FormerObject[];
  /** They have names of the prune list, but nothing shows that they are the product's. */
  readonly foreign: readonly FormerObject[];
  /** Pods have volumes of this driver: without it the kubelet could not delete them. */
  readonly needed: readonly FormerObject[];
}

async function findFormer({ objects, facts: { namespace } }: PlanningSite): Promise<FoundObjects> {
  const listed = formerObjects(namespace);
  const live = await readObjects(objects, [...listed.map(({ path }) => path), ...provingPaths(namespace)]);
  const found = listed.filter(({ path }) => live.get(path) !== undefined);
  const isOwn = (each: FormerObject) => isOfProduct(each, { namespace, objects: live });
  const own = found.filter(isOwn);
  const driver = own.find(isDaemonSet);
  const isNeeded = driver !== undefined && (await isInUse(objects, live.get(driver.path)));
  return {
    own: isNeeded ? own.filter((each) => !isDriver(each)) : own,
    foreign: found.filter((each) => !isOwn(each)),
    needed: isNeeded ? own.filter(isDriver) : [],
  };
}

function isDriver({ path }: { readonly path: string }): boolean {
  return path.endsWith(`/${FORMER_CSI}`);
}

function isDaemonSet({ path }: { readonly path: string }): boolean {
  return path.endsWith(`/daemonsets/${FORMER_CSI}`);
}

/** What was to be deleted, but pods with its volumes have been started since. */
async function neededNow(objects: ClusterObjects, plan: StepPlan): Promise<readonly string[]> {
  const deletions = deletionsOf(plan).filter(isDriver);
  const path = deletions.find(isDaemonSet)?.path;
  const daemonSet = path === undefined ? undefined : await objects.read(path);
  if (daemonSet === undefined || !(await isInUse(objects, daemonSet))) return [];
  return deletions.map(({ what }) => what);
}

/**
 * Whether a pod has a volume of the driver that this DaemonSet runs, also one that is being deleted. The DaemonSet names its
 * driver in the path of its socket; of pods with the former sidecar any other driver than this release's is it.
 */
async function isInUse(objects: ClusterObjects, daemonSet: Fields | undefined): Promise<boolean> {
  const text = JSON.stringify(daemonSet);
  const pods = await objects.list("/api/v1/pods");
  return pods.some((pod) => {
    const spec = fieldsIn(pod, "spec");
    const hasSidecar = itemsIn(spec, "containers").some((each) => textIn(each, "name") === FORMER_SIDECAR);
    return itemsIn(spec, "volumes").some((volume) => {
      const name = textIn(fieldsIn(volume, "csi"), "driver");
      return name !== undefined && name !== identity.csiDriver && (hasSidecar || text.includes(`/${name}/`));
    });
  });
}

function neededNotes(needed: readonly FormerObject[]): readonly string[] {
  if (needed.length === 0) return [];
  const what = needed.map((each) => each.what).join(", ");
  return [
    `kept while pods have volumes of its driver, those of the container ${FORMER_SIDECAR}, which the kubelet could not unmount without it: ${what}; plan again when their workloads are restarted`,
  ];
}

function keptNote({ what }: FormerObject): string {
  return `${what} is kept: nothing shows that it belongs to this product`;
}

function stopped(deployment: Fields): Fields {
  return { ...deployment, spec: { ...fieldsIn(deployment, "spec"), replicas: 0 } };
}

/** Deletion takes a moment if an object has finalizers or pods. */
async function untilGone(site: Parameters<Step["act"]>[0], plan: StepPlan, needed: readonly string[]): Promise<void> {
  const limit = site.now().getTime() + site.options.stallSeconds * 1_000;
  const deleted = deletionsOf(plan).filter(({ what }) => !needed.includes(what));
  while ((await existing(site.objects, deleted)).length > 0 && site.now().getTime() < limit) {
    site.signal.throwIfAborted();
    await site.wait(500);
  }
}

async function existing<Each extends { readonly path: string }>(
  objects: ClusterObjects,
  wanted: readonly Each[],
): Promise<readonly Each[]> {
  const live = await readObjects(
    objects,
    wanted.map(({ path }) => path),
  );
  return wanted.filter(({ path }) => live.get(path) !== undefined);
}

function deletionsOf({ changes }: StepPlan): readonly { readonly path: string; readonly what: string }[] {
  return changes.flatMap(({ action, path, what }) =>
    action === "delete" && path !== undefined ? [{ path, what }] : [],
  );
}

function rolesOf({ data }: StepPlan): readonly WantedObject[] {
  return (data as unknown as { readonly roles: readonly WantedObject[] }).roles;
}

async function settingsToRemove(objects: ClusterObjects) {
  const live = await readObjects(objects, SETTINGS);
  return [...live].flatMap(([path, object]) => {
    const keys = Object.keys(fieldsIn(object, "data")).filter((key) => FORMER_SETTINGS.includes(key));
    return keys.length === 0 ? [] : [{ path, keys }];
  });
}

/** Only manifests: the operator keeps its own roles. */
async function planRoles(site: PlanningSite): Promise<readonly WantedObject[]> {
  const { objects, facts, release } = site;
  const { method, datastore, version } = facts;
  if (method.kind !== "manifest") return [];
  const first = release.manifest({ datastore, network: method.network });
  const live = await readLiveManifest(objects, [...first.settings, ...first.components]);
  const daemonSet = daemonSetOf(live);
  if (daemonSet === undefined || !isFormer(daemonSet)) return [];
  const { components }: { components: readonly KubeObject[] } = release.manifest({
    datastore,
    network: targetNetwork(live, daemonSet, facts),
  });
  const compared = await comparedManifest(version, { datastore, network: method.network });
  return finalRoles(components, live, compared?.objects);
}

/**
 * It has no Service any more, but discovery still lists what the former API server told, and misses new kinds: only for an
 * APIService of its own the API server lists its definitions. It creates that one as soon as this one is deleted, and serves
 * the group in between.
 */
async function handOverApiService(objects: ClusterObjects): Promise<void> {
  const api = await objects.read(API_SERVICE);
  if (api === undefined || !isUnmanagedObject(api)) return;
  const { uid } = fieldsIn(api, "metadata");
  await objects.remove(API_SERVICE, { preconditions: { uid } });
}

async function isUnmanaged(objects: ClusterObjects): Promise<boolean> {
  const api = await objects.read(API_SERVICE);
  return api !== undefined && isUnmanagedObject(api);
}

function isUnmanagedObject(api: Fields): boolean {
  return !isForeign(api) && fieldsIn(api, "metadata", "labels")[MANAGED] === undefined;
}

/** Served by a program, not by definitions. */
function isForeign(api: Fields): boolean {
  return fieldsIn(api, "spec")["service"] !== undefined;
}

function definitionsNote(): string {
  const command = `kubectl get customresourcedefinitions --output name | grep '\\.${FORMER_API.group}$' | xargs kubectl delete`;
  return `The definitions of ${FORMER_API.group} and what they store stay, for a rollback. When you are sure, delete them with: ${command}`;
}

function nameIn(path: string): string {
  return path.replace(/^.*\/namespaces\/([^/]+)\/[^/]+\/(.+)$/, "$1/$2");
}
