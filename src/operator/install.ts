/**
 * From what there is to what the Installation asks for.
 *
 *   Installation + overlay + facts ── completeInstallation ──> complete and valid, or Degraded and nothing is rendered
 *      -> defaults written back -> pools -> renderInstallation -> settings of the node agents -> applied in order
 *      -> what is rendered no more is deleted, in the order of `removal-order.ts` -> states of the components
 *
 * If everything is as it should be, nothing is written.
 */

import { identity } from "../identity.ts";
import { clusterObjects } from "../kube/objects.ts";
import { formatProblems } from "../model/problem.ts";
import { CHOSEN_ANNOTATIONS } from "../model/recorded-annotations.ts";
import { quoted } from "../quote.ts";
import { CHOSEN_ADDRESSES } from "../release/admission/address-policies.ts";
import { completeInstallation } from "../release/installation/complete.ts";
import type { EffectiveInstallation } from "../release/installation/effective-installation.ts";
import type { KubeObject } from "../release/kube-object.ts";
import type { LiveObject } from "../release/live-object.ts";
import { objectPath } from "../release/object-kinds.ts";
import { servedBy, servesPolicies } from "../release/older-servers.ts";
import { renderInstallation } from "../release/workloads/render-installation.ts";
import { addEntries, missingEntries } from "../upkeep/address-list.ts";
import { VERSION } from "../version.ts";
import { configurationChanges } from "./agent-settings.ts";
import { installationState, poolsState, workloadStates } from "./component-states.ts";
import { degraded, progressing } from "./conditions.ts";
import { copiedSecrets, etcdSecret } from "./copied-secrets.ts";
import { datastoreOf, datastoreProblem, declaredIn } from "./declared.ts";
import { clusterFacts, etcdFilesIn } from "./facts.ts";
import { type FollowedSnapshot, labelledObjects, type Namespaces, objectNamed, objectsOf } from "./followed-objects.ts";
import { addFinalizer, prepareInstallation } from "./installation-writes.ts";
import { noLongerRendered, ownedBy } from "./owned-objects.ts";
import type { Found, Pass, PassOptions } from "./pass.ts";
import { removalOrder, unfinishedRollout, withLeftovers } from "./removal-order.ts";
import { writePools } from "./write-pools.ts";

export async function install(options: PassOptions, { snapshot, installation }: Pass): Promise<Found> {
  const { namespaces } = options;
  const latest = (object: LiveObject) => options.applier.latest(object);
  const finalized = await addFinalizer(options, installation);
  const declared = declaredIn(snapshot, finalized);
  const refuse = (message: string): Found => ({
    installation: finalized,
    components: {
      installation: degraded("InvalidConfigurationError", message),
      ...workloadStates(snapshot, namespaces, latest),
    },
  });
  const byManifest = manifestProblem(snapshot, namespaces);
  if (byManifest !== undefined) return refuse(byManifest);
  const otherDatastore = datastoreProblem(declared);
  if (otherDatastore !== undefined) return refuse(formatProblems([otherDatastore]));
  const datastore = datastoreOf(declared);
  const secret = etcdSecret(snapshot, namespaces, datastore);
  const records = await options.records.read({ datastore, files: etcdFilesIn(secret) });
  const existing = records.pools.map(({ resource }) => resource);
  const facts = clusterFacts(snapshot, namespaces, { pools: existing, secret });
  const completed = completeInstallation(declared, facts);
  if (!completed.ok) return refuse(formatProblems(completed.problems));
  const prepared = await prepareInstallation(options, finalized, completed.defaults);
  const effective = completed.installation;
  const { pools, problems, isWaiting } = await writePools(effective, records);
  const rendered = renderInstallation(effective, { ...facts, pools });
  const secrets = copiedSecrets(effective, snapshot, namespaces);
  const served = servedBy(options.serverVersion(), rendered.objects);
  const objects = inOrder(served, secrets).map((object) => ownedBy(prepared, object));
  // Before the agents: a new one must not start with the settings of the former release.
  const changes = configurationChanges(rendered.resources.nodeAgentConfiguration, records.configurations);
  await records.commit(changes, "the settings of the node agents");
  if (effective.admissionPolicies.chosenAddresses && servesPolicies(options.serverVersion()))
    await enterAnnotationUsers(options, snapshot, effective);
  await applyAll(options, snapshot, objects);
  const rollout = unfinishedRollout({ snapshot, namespaces, rendered: objects, latest });
  const later = await removeUnwanted(options, { snapshot, rendered: objects, rollout });
  const { mode } = effective.console;
  const workloads = workloadStates(snapshot, namespaces, latest, { console: mode });
  const runs = [workloads.node, workloads.controllers].every(({ available }) => available.status === "True");
  return {
    installation: prepared,
    components: {
      installation: withLeftovers(installationState(effective, options.serverVersion()), later, rollout),
      ...workloads,
      ippools: isWaiting ? LOCKED : poolsState(effective, pools, problems),
    },
    without: mode === "Enabled" ? [] : ["console"],
    status: {
      computed: completed.computed,
      mtu: effective.network.mtu,
      variant: identity.title,
      // While a new release is rolled out, the former one is what is installed.
      ...(runs ? { [`${identity.product}Version`]: VERSION } : {}),
    },
  };
}

/** Before the policy counts for the first time: who chooses addresses today may go on. */
async function enterAnnotationUsers(
  { client, requireLeading, log }: PassOptions,
  snapshot: FollowedSnapshot,
  { network: { featureControl } }: EffectiveInstallation,
): Promise<void> {
  if (objectNamed(snapshot, "validatingadmissionpolicybindings", { name: CHOSEN_ADDRESSES }) !== undefined) return;
  const objects = clusterObjects(client);
  const entries = await missingEntries(
    objects,
    CHOSEN_ANNOTATIONS.filter((key) => featureControl[key]),
  );
  if (Object.keys(entries).length === 0) return;
  requireLeading();
  await addEntries(objects, entries);
  const entered = Object.entries(entries).map(([key, namespaces]) => `${key}: ${namespaces.join(", ")}`);
  log(`Permitted namespaces that choose addresses today: ${entered.join("; ")}`, "INFO");
}

const LOCKED = progressing("ResourceNotReady", "the datastore is locked; the IP pools are changed when it is unlocked");

/** Secrets right before the pods that use them. */
function inOrder(objects: readonly KubeObject[], secrets: readonly KubeObject[]): readonly KubeObject[] {
  const first = objects.findIndex(({ kind }) => kind === "DaemonSet" || kind === "Deployment");
  return first === -1 ? [...objects, ...secrets] : [...objects.slice(0, first), ...secrets, ...objects.slice(first)];
}

async function applyAll(
  { applier }: PassOptions,
  snapshot: FollowedSnapshot,
  objects: readonly KubeObject[],
): Promise<void> {
  const live = new Map<string, LiveObject>(labelledObjects(snapshot).map((object) => [objectPath(object), object]));
  for (const object of objects) {
    await applier.apply(object, object.kind === "Secret" ? "not followed" : live.get(objectPath(object)));
  }
}

interface Unwanted {
  readonly snapshot: FollowedSnapshot;
  readonly rendered: readonly KubeObject[];
  readonly rollout: string | undefined;
}

/** Returns what has to stay until the rollout is over. */
async function removeUnwanted(
  { applier, formerSecrets, namespaces }: PassOptions,
  { snapshot, rendered, rollout }: Unwanted,
): Promise<readonly LiveObject[]> {
  const secrets = rendered.filter(({ kind }) => kind === "Secret");
  const former = await formerSecrets.find(secrets, namespaces);
  const { now, later } = removalOrder([...noLongerRendered(labelledObjects(snapshot), rendered), ...former], rollout);
  for (const object of now) await applier.prune(object, "the Installation does not ask for it any more");
  return later;
}

/** An installation by a manifest, without the operator: two node agents on one node would fight over it. Pure. */
const PART_OF = "app.kubernetes.io/part-of";

/** `undefined` if there is none, or the operator's own is running beside it already. */
export function manifestProblem(snapshot: FollowedSnapshot, { components }: Namespaces): string | undefined {
  const name = identity.nodeAgent;
  if (objectNamed(snapshot, "daemonsets", { namespace: components, name }) !== undefined) return undefined;
  const found = objectsOf(snapshot, "agents").find(
    ({ metadata }) => metadata.namespace !== components && metadata.labels?.[PART_OF] === identity.product,
  );
  if (found === undefined) return undefined;
  const namespace = found.metadata.namespace ?? "";
  return `${identity.title} was installed by a manifest: DaemonSet ${quoted(`${namespace}/${name}`)} exists, and its agents would lose their permissions; nothing was changed. First remove that installation (docs/manifests.md, "Removal"): run "kubectl --namespace ${namespace} delete daemonset/${name} deployment/${identity.controllers}", then delete the other objects of the manifest with "--selector ${PART_OF}=${identity.product}", which keeps pools and addresses`;
}
