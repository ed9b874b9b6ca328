/** Carries out the next step in removing an Installation, and says what it is waiting for. */
import { identity } from "../identity.ts";
import { completeInstallation } from "../release/installation/complete.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { CLEANED_UP_ANNOTATION, FINALIZER } from "../release/operator-names.ts";
import { renderUninstall } from "../release/workloads/render-installation.ts";
import { configurationRemoval } from "./agent-settings.ts";
import { type ComponentState, degraded, progressing } from "./conditions.ts";
import { etcdSecret } from "./copied-secrets.ts";
import { datastoreOf, declaredIn, installedOf } from "./declared.ts";
import { type DeletionStep, WHY_DELETED } from "./deletion-view.ts";
import { sendEvent } from "./events.ts";
import { clusterFacts, etcdFilesIn } from "./facts.ts";
import { annotateInstallation, removeFinalizer } from "./installation-writes.ts";
import { nextDeletionStep } from "./next-deletion-step.ts";
import { uncleanMessage } from "./node-cleanup.ts";
import { ownedBy } from "./owned-objects.ts";
import type { Found, Pass, PassOptions } from "./pass.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./request-deletion.ts";

/**
 * "gone": nothing of it is left, and nothing to report on. `removeReports` comes before the finalizer: when that is gone,
 * the operator's own roles may go at any moment.
 */
export async function removeInstallation(
  options: PassOptions,
  pass: Pass,
  removeReports: () => Promise<void>,
): Promise<Found | "gone"> {
  const { snapshot, installation } = pass;
  if (!installation.metadata.finalizers?.includes(FINALIZER)) return "gone";
  const step = nextDeletionStep({ snapshot, namespaces: options.namespaces, installation, now: options.now() });
  if (step.kind === "finish") await removeReports();
  await carryOut(options, pass, step);
  if (step.kind === "finish") return "gone";
  return { installation, components: { installation: stateOf(step) } };
}

async function carryOut(options: PassOptions, pass: Pass, step: DeletionStep): Promise<void> {
  switch (step.kind) {
    case "delete":
      for (const object of step.objects) await options.applier.remove(object, step.why);
      return;
    case "clean up nodes":
      await options.applier.apply(cleaner(options, pass), undefined);
      return;
    case "nodes are done":
      await reportUnclean(options, pass, step.unclean);
      await annotateInstallation(options, pass.installation, { [CLEANED_UP_ANNOTATION]: "true" });
      return;
    case "finish":
      await removeRecords(options, pass);
      await removeFinalizer(options, pass.installation);
      return;
    case "wait":
      if (step.unfollowed !== undefined) await options.applier.removeUnfollowed(step.unfollowed, WHY_DELETED);
      return;
  }
}

/** In an event too: it is in namespace "default", so it outlives the Installation. */
async function reportUnclean(options: PassOptions, { installation }: Pass, nodes: readonly string[]): Promise<void> {
  if (nodes.length === 0) return;
  const message = uncleanMessage(nodes);
  options.log(message, "WARNING");
  await sendEvent(options.events, installation, { type: "Warning", reason: "NodesNotCleanedUp", message });
}

/** By what was installed, or by the Installation as it is. */
function cleaner({ namespaces }: PassOptions, { snapshot, installation }: Pass): KubeObject {
  const facts = clusterFacts(snapshot, namespaces, { pools: [], secret: undefined });
  for (const candidate of installedOf(declaredIn(snapshot, installation))) {
    const completed = completeInstallation(candidate, facts);
    if (completed.ok) return ownedBy(installation, renderUninstall(completed.installation, facts));
  }
  throw new Error(
    `Cannot clean up the nodes: the Installation is not valid; correct it, or annotate it with ${SKIP_CLEANUP_ANNOTATION}=true`,
  );
}

/** The settings that the operator made. Pools and addresses stay; so does what cannot be reached. */
async function removeRecords(options: PassOptions, { snapshot, installation }: Pass): Promise<void> {
  try {
    const declared = declaredIn(snapshot, installation);
    const datastore = datastoreOf(installedOf(declared)[0] ?? declared);
    const secret = etcdSecret(snapshot, options.namespaces, datastore);
    const records = await options.records.read({ datastore, files: etcdFilesIn(secret) });
    await records.commit(configurationRemoval(records.configurations), "the settings of the node agents");
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    options.log(`NodeAgentConfiguration "default" of ${identity.title} stays: ${reason}`, "WARNING");
  }
}

function stateOf(step: DeletionStep): ComponentState {
  if (step.kind !== "wait") return progressing("Deleting", "the Installation is being deleted");
  const waiting = progressing("Deleting", `the Installation is being deleted: ${step.message}`);
  return step.problem === undefined ? waiting : degraded(step.reason ?? "PodFailure", step.problem, waiting);
}
