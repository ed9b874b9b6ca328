/** Carries out the next step in removing an Installation, and says what it is waiting for. */
import { identity } from "../identity.ts";
import { completeInstallation } from "../release/installation/complete.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { CLEANED_UP_ANNOTATION, FINALIZER } from "../release/operator-names.ts";
import { renderUninstall } from "../release/workloads/installation.ts";
import { type ComponentState, degraded, progressing } from "./conditions.ts";
import { etcdSecret } from "./copied-secrets.ts";
import { datastoreOf, declaredIn, installedOf } from "./declared.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./delete-installation.ts";
import { nextDeletionStep } from "./deletion.ts";
import { type DeletionStep, WHY_DELETED } from "./deletion-view.ts";
import { sendEvent } from "./events.ts";
import { clusterFacts, etcdFilesIn } from "./facts.ts";
import { annotateInstallation, removeFinalizer } from "./installation-writes.ts";
import { uncleanMessage } from "./node-cleanup.ts";
import { ownedBy } from "./owned-objects.ts";
import type { Found, Pass, PassMeans } from "./pass.ts";
import { configurationRemoval } from "./record-changes.ts";

/**
 * "gone": nothing of it is left, and nothing to report on. `removeReports` comes before the finalizer: when that is gone,
 * the operator's own roles may go at any moment.
 */
export async function removeInstallation(
  means: PassMeans,
  pass: Pass,
  removeReports: () => Promise<void>,
): Promise<Found | "gone"> {
  const { snapshot, installation } = pass;
  if (!installation.metadata.finalizers?.includes(FINALIZER)) return "gone";
  const step = nextDeletionStep({ snapshot, namespaces: means.namespaces, installation, now: means.now() });
  if (step.kind === "finish") await removeReports();
  await carryOut(means, pass, step);
  if (step.kind === "finish") return "gone";
  return { installation, components: { installation: stateOf(step) } };
}

async function carryOut(means: PassMeans, pass: Pass, step: DeletionStep): Promise<void> {
  switch (step.kind) {
    case "delete":
      for (const object of step.objects) await means.applier.remove(object, step.why);
      return;
    case "clean up nodes":
      await means.applier.apply(cleaner(means, pass), undefined);
      return;
    case "nodes are done":
      await reportUnclean(means, pass, step.unclean);
      await annotateInstallation(means, pass.installation, { [CLEANED_UP_ANNOTATION]: "true" });
      return;
    case "finish":
      await removeRecords(means, pass);
      await removeFinalizer(means, pass.installation);
      return;
    case "wait":
      if (step.unfollowed !== undefined) await means.applier.removeUnfollowed(step.unfollowed, WHY_DELETED);
      return;
  }
}

/** In an event too: it is in namespace "default", so it outlives the Installation. */
async function reportUnclean(means: PassMeans, { installation }: Pass, nodes: readonly string[]): Promise<void> {
  if (nodes.length === 0) return;
  const message = uncleanMessage(nodes);
  means.log(message, "WARNING");
  await sendEvent(means.events, installation, { type: "Warning", reason: "NodesNotCleanedUp", message });
}

/** By what was installed, or by the Installation as it is. */
function cleaner({ namespaces }: PassMeans, { snapshot, installation }: Pass): KubeObject {
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
async function removeRecords(means: PassMeans, { snapshot, installation }: Pass): Promise<void> {
  try {
    const declared = declaredIn(snapshot, installation);
    const datastore = datastoreOf(installedOf(declared)[0] ?? declared);
    const secret = etcdSecret(snapshot, means.namespaces, datastore);
    const records = await means.records.read({ datastore, files: etcdFilesIn(secret) });
    await records.commit(configurationRemoval(records.configurations), "the settings of the node agents");
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    means.log(`NodeAgentConfiguration "default" of ${identity.title} stays: ${reason}`, "WARNING");
  }
}

function stateOf(step: DeletionStep): ComponentState {
  if (step.kind !== "wait") return progressing("Deleting", "the Installation is being deleted");
  const waiting = progressing("Deleting", `the Installation is being deleted: ${step.message}`);
  return step.problem === undefined ? waiting : degraded(step.reason ?? "PodFailure", step.problem, waiting);
}
