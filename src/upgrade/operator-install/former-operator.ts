/**
 * Makes way for the operator of this release: a former one whose Deployment cannot be changed is deleted, and the former
 * controllers are stopped, so that at no time two of them write. Networks go on meanwhile: neither forwards packets.
 * The Installations become those of this release before its operator sees them.
 */
import { PluginError } from "../../errors.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { DEFAULT_NAME, OVERLAY_NAME } from "../../model/installation/installation.ts";
import { listAt, textAt, textsAt } from "../../release/live-object.ts";
import { podLabels } from "../../release/workloads/names.ts";
import type { Obstacle } from "../engine/facts.ts";
import { objectDiff } from "../engine/object-diff.ts";
import type { PlannedChange, PlanningSite, StepSite } from "../engine/step.ts";
import { FORMER_CONTROLLERS } from "../former-names.ts";
import { isSilent, nodeTrouble } from "../nodes/pods.ts";
import { fieldsIn, numberAt } from "../object-fields.ts";
import {
  installationSchema,
  type Translated,
  translateInstallation,
  withFurtherSources,
} from "./translate-installation.ts";

export const OPERATOR_DEPLOYMENT = `/apis/apps/v1/namespaces/${identity.operator}/deployments/${identity.operator}`;
const PODS = `/api/v1/namespaces/${identity.operator}/pods`;
const CONTROLLERS = `/apis/apps/v1/namespaces/${identity.systemNamespace}/deployments/${FORMER_CONTROLLERS}`;
const INSTALLATIONS = `/apis/${apiVersionOf(OPERATOR_API)}/installations`;

/** Set by earlier operators; nobody removes them when this one runs. */
const FORMER_FINALIZERS: ReadonlySet<string> = new Set([
  `${OPERATOR_API.group}/installation-controller`,
  `${OPERATOR_API.group}/apiserver-controller`,
  `${identity.product}.io/operator-cleanup`,
  `${identity.product}.io/cni-protector`,
]);

export interface FormerPlan {
  readonly changes: readonly PlannedChange[];
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

export async function planFormerOperator(site: PlanningSite): Promise<FormerPlan> {
  const { objects } = site;
  const changes: PlannedChange[] = [];
  if (isFormer(await objects.read(OPERATOR_DEPLOYMENT))) {
    const what = `Deployment ${identity.operator}/${identity.operator}`;
    changes.push({ action: "delete", what: `${what} (its selector cannot be changed)`, path: OPERATOR_DEPLOYMENT });
  }
  if (isRunning(await objects.read(CONTROLLERS))) {
    const what = `Deployment ${identity.systemNamespace}/${FORMER_CONTROLLERS}`;
    changes.push({ action: "update", what, path: CONTROLLERS, diff: "spec.replicas becomes 0" });
  }
  const translations = await translatedInstallations(site);
  for (const { path, live, wanted } of translations) {
    const diff = objectDiff(live, wanted);
    const what = `Installation ${path.slice(INSTALLATIONS.length + 1)}`;
    if (diff !== "") changes.push({ action: "update", what, path, diff });
  }
  for (const path of await protectedPaths(objects)) {
    changes.push({ action: "update", what: `finalizers of ${path}`, path });
  }
  return {
    changes,
    notes: translations.flatMap(({ translated }) => translated.notes),
    obstacles: translations.flatMap(({ translated }) => translated.obstacles),
  };
}

export async function remainingOfFormerOperator(site: PlanningSite): Promise<readonly string[]> {
  const { objects } = site;
  const translations = await translatedInstallations(site);
  return [
    ...(isFormer(await objects.read(OPERATOR_DEPLOYMENT)) ? ["delete the Deployment of the former operator"] : []),
    ...(isRunning(await objects.read(CONTROLLERS)) ? ["stop the former controllers"] : []),
    ...translations.filter(isChanged).map(({ path }) => `translate ${path}`),
    ...(await protectedPaths(objects)).map((path) => `remove finalizers of the former operator from ${path}`),
  ];
}

export async function replaceFormerOperator(site: StepSite): Promise<void> {
  const { objects } = site;
  const operator = await objects.read(OPERATOR_DEPLOYMENT);
  if (operator !== undefined && isFormer(operator)) {
    await objects.remove(OPERATOR_DEPLOYMENT, { propagationPolicy: "Foreground" });
    await untilGone(site, operator);
    site.progress("the former operator is stopped");
  }
  if (isRunning(await objects.read(CONTROLLERS))) {
    await objects.patch(CONTROLLERS, { spec: { replicas: 0 } });
    site.progress("the former controllers are stopped");
  }
  for (const { path, wanted } of (await translatedInstallations(site)).filter(isChanged)) {
    await objects.replace(path, wanted);
    site.progress(`Installation ${path.slice(INSTALLATIONS.length + 1)} is as this release has it`);
  }
  for (const path of await protectedPaths(objects)) {
    const live = await objects.read(path);
    if (live !== undefined)
      await objects.patch(path, {
        metadata: { finalizers: keptFinalizers(live), resourceVersion: fieldsIn(live, "metadata")["resourceVersion"] },
      });
  }
}

/** The selector of a Deployment cannot be changed. One of this product's own releases is changed in place. */
function isFormer(deployment: Fields | undefined): boolean {
  if (deployment === undefined) return false;
  const selector = textsAt(deployment, "spec", "selector", "matchLabels");
  return !Bun.deepEquals(selector, podLabels(identity.operator));
}

function isRunning(deployment: Fields | undefined): boolean {
  return deployment !== undefined && numberAt(deployment, 1, "spec", "replicas") !== 0;
}

/** Before the datastore is locked: the step that replaces the operator could not end its pods, and the lock would stay. */
export async function requireOperatorCanEnd({ objects }: StepSite): Promise<void> {
  const operator = await objects.read(OPERATOR_DEPLOYMENT);
  if (operator === undefined || !isFormer(operator)) return;
  for (const pod of await objects.list(PODS, { labelSelector: selectorOf(operator) })) {
    const node = textAt(pod, "spec", "nodeName");
    if (node === "") continue;
    const machine = await objects.read(`/api/v1/nodes/${node}`);
    if (!isSilent(machine)) continue;
    throw new PluginError(
      "try-again-later",
      `Cannot lock the datastore: a pod of the former operator is on Node ${node}, where it cannot end: ${nodeTrouble(machine)}`,
      { details: `repair the node, or delete the Node ${node} if it does not come back; then run upgrade apply again` },
    );
  }
}

const POLL_MILLISECONDS = 500;
const POLLS = 240;

/** Its pods too: two operators would undo each other's work. */
async function untilGone({ objects, wait }: StepSite, deployment: Fields): Promise<void> {
  const labelSelector = selectorOf(deployment);
  for (let poll = 0; poll < POLLS; poll += 1) {
    const isThere = (await objects.read(OPERATOR_DEPLOYMENT)) !== undefined;
    const pods = await objects.list(PODS, { labelSelector });
    if (!isThere && pods.length === 0) return;
    await wait(POLL_MILLISECONDS);
  }
  throw new PluginError("try-again-later", "Cannot replace the operator: the pods of the former one do not end", {
    details:
      `kubectl --namespace ${identity.operator} get pods --output wide --selector ${labelSelector}; ` +
      "if the machine of such a pod is off, delete its Node and run upgrade apply again, or go back with upgrade rollback",
  });
}

function selectorOf(deployment: Fields): string {
  const labels = Object.entries(textsAt(deployment, "spec", "selector", "matchLabels"));
  return labels.map((label) => label.join("=")).join(",");
}

interface Translation {
  readonly path: string;
  readonly live: Fields;
  readonly wanted: Fields;
  readonly translated: Translated;
}

export async function translatedInstallations(site: PlanningSite): Promise<readonly Translation[]> {
  const { objects, release, facts } = site;
  const schema = installationSchema(release.operatorDefinitions);
  const found = await Promise.all(
    [DEFAULT_NAME, OVERLAY_NAME].map(async (name): Promise<readonly Translation[]> => {
      const path = `${INSTALLATIONS}/${name}`;
      const live = await objects.read(path);
      if (live === undefined) return [];
      const place = { what: `Installation ${name}:`, root: "spec" };
      const spec: Fields = fieldsIn(live, "spec");
      const isCarried = name === DEFAULT_NAME && facts.allowsSourceSpoofing === true;
      const translated = translateInstallation(isCarried ? withFurtherSources(spec) : spec, schema, place);
      const metadata = {
        ...fieldsIn(live, "metadata"),
        ...(hasFormerFinalizer(live) ? { finalizers: keptFinalizers(live) } : {}),
      };
      return [{ path, live, wanted: { ...live, metadata, spec: translated.spec }, translated }];
    }),
  );
  return found.flat();
}

function isChanged({ live, wanted }: Translation): boolean {
  return hasFormerFinalizer(live) || !Bun.deepEquals(live["spec"] ?? {}, wanted["spec"]);
}

/** Earlier operators protect accounts and roles of the plugin in the same way. */
async function protectedPaths(objects: ClusterObjects): Promise<readonly string[]> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const paths = [identity.nodeAgent, `${identity.product}-cni-plugin`].flatMap((name) => [
    `/api/v1/namespaces/${identity.systemNamespace}/serviceaccounts/${name}`,
    `${rbac}/clusterroles/${name}`,
    `${rbac}/clusterrolebindings/${name}`,
  ]);
  const found = await Promise.all(paths.map(async (path) => [path, await objects.read(path)] as const));
  return found.filter(([, live]) => live !== undefined && hasFormerFinalizer(live)).map(([path]) => path);
}

function hasFormerFinalizer(live: Fields): boolean {
  return keptFinalizers(live).length < listAt(live, "metadata", "finalizers").length;
}

function keptFinalizers(live: Fields): readonly unknown[] {
  return listAt(live, "metadata", "finalizers").filter((name) => !FORMER_FINALIZERS.has(String(name)));
}
