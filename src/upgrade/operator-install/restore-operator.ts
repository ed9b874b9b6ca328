/**
 * Puts the former operator back: this one is stopped first, because the two would undo each other's work. The former one then
 * puts its node agents back, which is awaited: the step that goes back next deletes what agents of this release use.
 */
import { PluginError } from "../../errors.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { ADMISSION_API } from "../../release/admission/policy-objects.ts";
import { listAt } from "../../release/live-object.ts";
import { MANAGED_BY_TEXT } from "../../release/managed-by-label.ts";
import { CONSOLE } from "../../release/workloads/names.ts";
import { readBackedUp, restoreBackedUp } from "../engine/restore-objects.ts";
import type { PlannedChange, StepSite } from "../engine/step.ts";
import { waitForFormerAgents } from "./former-agents.ts";
import { OPERATOR_DEPLOYMENT } from "./former-operator.ts";

const INSTALLATION = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;
const SYSTEM = `/namespaces/${identity.systemNamespace}`;
/** What only this release has: in the place of the former controllers, and the console. */
const OWN_WORKLOADS = [
  `/apis/apps/v1${SYSTEM}/deployments/${identity.controllers}`,
  `/apis/policy/v1${SYSTEM}/poddisruptionbudgets/${identity.controllers}`,
  `/apis/apps/v1${SYSTEM}/deployments/${CONSOLE}`,
  // The Secret with its certificate goes with it.
  `/api/v1${SYSTEM}/services/${CONSOLE}`,
];
const POLL_MILLISECONDS = 500;
const POLLS = 240;
const ATTEMPTS = 20;

export async function restoreOperator(site: StepSite, changes: readonly PlannedChange[]): Promise<void> {
  const paths = [...new Set(changes.flatMap(({ path }) => path ?? []))];
  const isReplaced = changes.some(({ action, path }) => action === "delete" && path === OPERATOR_DEPLOYMENT);
  if (isReplaced) {
    await stopOperator(site);
    for (const path of OWN_WORKLOADS) await site.objects.remove(path);
    await removeFinalizer(site);
  }
  await restoreDefinitions(site);
  // Roles and Installations before the operator that uses them.
  for (const path of [...paths.filter((each) => each !== OPERATOR_DEPLOYMENT), ...paths].filter(isFirst)) {
    await whenAccepted(site, () => restoreBackedUp(site, [path]));
  }
  await removeAdmissionPolicies(site);
  // Nothing of a storage that both releases use is deleted.
  if (site.facts.storage !== "current") await waitForFormerAgents(site);
}

/** The former operator does not know them: nobody would update or remove them. */
async function removeAdmissionPolicies({ objects }: StepSite): Promise<void> {
  for (const plural of ["validatingadmissionpolicybindings", "validatingadmissionpolicies"]) {
    const path = `/apis/${ADMISSION_API}/${plural}`;
    for (const { metadata } of await objects.list(path, { labelSelector: MANAGED_BY_TEXT })) {
      if (isObject(metadata)) await objects.remove(`${path}/${metadata["name"]}`);
    }
  }
}

function isFirst(path: string, index: number, paths: readonly string[]): boolean {
  return paths.indexOf(path) === index;
}

/** The former operator writes fields of its own API that the definitions of this release refuse or do not have. */
async function restoreDefinitions(site: StepSite): Promise<void> {
  const saved = await readBackedUp(site.backups);
  const names = site.release.operatorDefinitions.map(({ metadata }) => metadata.name);
  const paths = names.map((name) => `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
  await restoreBackedUp(
    site,
    paths.filter((path) => isObject(saved[path])),
  );
}

/** The API server needs a moment until it validates by a changed definition. */
async function whenAccepted({ wait }: StepSite, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (failure) {
      const isRefused = failure instanceof PluginError && failure.kind === "resource-invalid";
      if (!isRefused || attempt >= ATTEMPTS) throw failure;
      await wait(POLL_MILLISECONDS);
    }
  }
}

/** With the other selector the Deployment is another one, which has to be created. */
async function stopOperator({ objects, wait }: StepSite): Promise<void> {
  await objects.remove(OPERATOR_DEPLOYMENT, { propagationPolicy: "Foreground" });
  for (let poll = 0; poll < POLLS; poll += 1) {
    if ((await objects.read(OPERATOR_DEPLOYMENT)) === undefined) return;
    await wait(POLL_MILLISECONDS);
  }
  throw new PluginError("try-again-later", "Cannot go back: the pods of the operator do not end", {
    details: `see where they run (kubectl --namespace ${identity.operator} get pods -o wide); if the machine of such a pod is off, delete its Node, and run upgrade rollback again`,
  });
}

async function removeFinalizer({ objects }: StepSite): Promise<void> {
  const installation = await objects.read(INSTALLATION);
  const finalizers = listAt(installation, "metadata", "finalizers");
  const kept = finalizers.filter((name) => name !== `${OPERATOR_API.group}/installation`);
  if (kept.length < finalizers.length) await objects.patch(INSTALLATION, { metadata: { finalizers: kept } });
}
