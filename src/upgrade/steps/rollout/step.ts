/** Rules 7 and 8, and for every way of installation: each node gets a node agent of this release. */
import { counted } from "../../../counted.ts";
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { quoted } from "../../../quote.ts";
import { agentImage, agentsPath, daemonSetPath } from "../../engine/agents.ts";
import type { PlanningSite, Step, StepPlan, StepSite } from "../../engine/step.ts";
import { guardedWait } from "../../former-storage/guard-lock.ts";
import { readFormerNodes } from "../../nodes/nodes-at-lock.ts";
import { type Pace, rolloutPace, rolloutSeconds, SECONDS_PER_NODE } from "../../nodes/pace.ts";
import type { NodeState } from "../../nodes/pods.ts";
import { readRollout } from "../../nodes/read-view.ts";
import { pendingNodes, type WaitedFor, waitForNodes } from "../../nodes/wait-for-nodes.ts";
import { fieldsIn, textIn } from "../../object-fields.ts";
import { REMAINING_NODES } from "../remaining-nodes/step.ts";
import { podSecurityFindings, readPodPermissions } from "./pod-security-policies.ts";
import { rolloutNotes, rolloutObstacles } from "./preflight.ts";

const NAME = "rollout";

export const rolloutStep: Step = {
  name: NAME,
  title: "Wait until every node runs this release",
  rule: 7,
  why: "The node agents are replaced, the first one alone, then several at once. Pods keep their network meanwhile.",

  async plan(site) {
    const { objects, facts } = site;
    const path = await agentsPath(objects, facts.namespace);
    const formerImage = await pinnedImage(site, path);
    if ((await leftOf(site, () => new Date(), { formerImage })).length === 0) return undefined;
    const count = facts.nodes.length;
    const pace = rolloutPace(site, count, path === undefined ? undefined : await objects.read(path));
    const what = path === undefined ? "Node agents" : `DaemonSet ${facts.namespace}/${path.replace(/^.*\//, "")}`;
    return {
      step: NAME,
      changes: [{ action: "restart", what: `${what}: ${paceText(count, pace)}` }],
      ...(await preflight(site, path, formerImage)),
      estimatedSeconds: rolloutSeconds(count, pace),
      data: formerImage === undefined ? {} : { formerImage },
    };
  },

  async remaining(site, plan) {
    const notes = await site.notes.read();
    const left = new Set(Object.keys(fieldsIn(notes, "left")));
    // What `act` has seen updated is enough: an agent that is restarted since, or a node that joins, must not stop the run under the lock.
    // Only in the same run of the tool: one that continues later looks at them again.
    const isEnough = notes["enoughForRunOf"] === site.begunAt.toISOString() && site.stateOf(NAME) === "running";
    const isAwaited = ({ node, state }: NodeState) => !left.has(node) && (state === "old" || !isEnough);
    return leftOf(site, site.now, { formerImage: textIn(plan.data, "formerImage"), isAwaited });
  },

  async act(site, plan) {
    const { objects, facts, release } = site;
    const path = (await agentsPath(objects, facts.namespace)) ?? daemonSetPath(facts.namespace, identity.nodeAgent);
    const formerImage = textIn(plan.data, "formerImage");
    const missingTemplate = (daemonSet: Fields | undefined) => formerTemplate(daemonSet, release.version, formerImage);
    const left = await waitForNodes(site, path, {
      missingTemplate,
      // Plans of earlier builds have no step that waits for them later.
      ...(site.stateOf(REMAINING_NODES) === undefined ? {} : await mayLeave(site)),
      ...guardedWait(site, "upgrade apply"),
    });
    const reasons = Object.fromEntries(left.map(({ node, why }) => [node, why]));
    await site.notes.write({
      enoughForRunOf: site.begunAt.toISOString(),
      ...(left.length === 0 ? {} : { left: reasons }),
    });
  },
};

async function mayLeave(site: StepSite): Promise<Pick<WaitedFor, "mayLeaveNodes" | "formerNodes">> {
  return { mayLeaveNodes: true, formerNodes: await readFormerNodes(site) };
}

/** `5000 nodes, the first one alone, then 500 at once, about 20 s each` */
function paceText(count: number, { atOnce }: Pace): string {
  const order = atOnce === 1 ? "one at a time" : `the first one alone, then ${Math.min(atOnce, count)} at once`;
  return `${counted(count, "node")}, ${order}, about ${SECONDS_PER_NODE} s each`;
}

/** Before the update: what would stop it later, usually while the datastore is locked. */
async function preflight(
  { objects, facts, release }: PlanningSite,
  path: string | undefined,
  formerImage: string | undefined,
): Promise<Pick<StepPlan, "obstacles" | "notes">> {
  const isPartlyReadyAccepted = facts.datastore === "etcd";
  const view =
    path === undefined ? undefined : await readRollout(objects, { path, isPartlyReadyAccepted, now: new Date() });
  if (view === undefined) return { obstacles: [], notes: [] };
  const isBegun = formerTemplate(view.daemonSet, release.version, formerImage) === "";
  const permissions = await readPodPermissions(objects, facts);
  const security =
    permissions === undefined ? { obstacles: [], notes: [] } : podSecurityFindings(permissions, facts, view.pods);
  return {
    obstacles: isBegun ? [] : [...rolloutObstacles(view), ...security.obstacles],
    notes: [...rolloutNotes(view), ...security.notes],
  };
}

/** The image of an earlier release that is named only by its digest: another one has to take its place. */
async function pinnedImage(
  { objects, facts, release }: PlanningSite,
  path: string | undefined,
): Promise<string | undefined> {
  if (path === undefined || facts.version === release.version) return undefined;
  const image = agentImage(await objects.read(path));
  return image !== undefined && isUntagged(image) ? image : undefined;
}

function isUntagged(image: string): boolean {
  return image.includes("@") && !/:[^/@]+@/.test(image);
}

async function leftOf(
  site: PlanningSite,
  now: () => Date,
  {
    formerImage,
    isAwaited,
  }: { readonly formerImage: string | undefined; readonly isAwaited?: (state: NodeState) => boolean },
): Promise<readonly string[]> {
  const { objects, facts, release, signal } = site;
  const path = await agentsPath(objects, facts.namespace);
  if (path === undefined) return ["There is no DaemonSet of the node agents"];
  const former = formerTemplate(await objects.read(path), release.version, formerImage);
  if (former !== "") return [former];
  return pendingNodes({ objects, facts, signal, now }, path, isAwaited);
}

/** Empty if the template is that of this release. An image without a tag tells only if it is the former one. */
function formerTemplate(daemonSet: Fields | undefined, version: string, formerImage: string | undefined): string {
  const image = agentImage(daemonSet);
  if (image === undefined) return "The DaemonSet has no container of the node agent";
  const isPresent = isUntagged(image) ? image !== formerImage : image.replace(/@.*$/, "").endsWith(`:${version}`);
  if (isPresent) return "";
  const name = textIn(fieldsIn(daemonSet, "metadata"), "name");
  return `DaemonSet ${name} still has the image ${quoted(image)}`;
}
