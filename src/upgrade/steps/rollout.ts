/** Rules 7 and 8, and for every way of installation: each node gets a node agent of this release. */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { quoted } from "../../quote.ts";
import { fieldsIn, textIn } from "../manifest/workload.ts";
import { agentImage, agentsPath, daemonSetPath } from "../rollout/agents.ts";
import { rolloutNotes, rolloutObstacles } from "../rollout/preflight.ts";
import { readRollout } from "../rollout/read-view.ts";
import { pendingNodes, waitForNodes } from "../rollout/wait.ts";
import type { PlanningSite, Step, StepPlan } from "../step.ts";

const NAME = "rollout";
export const SECONDS_PER_NODE = 20;

export const rolloutStep: Step = {
  name: NAME,
  title: "Wait until every node runs this release",
  rule: 7,
  why: "The orchestrator replaces the node agents one node at a time. Pods keep their network meanwhile.",

  async plan(site) {
    const { objects, facts } = site;
    const path = await agentsPath(objects, facts.namespace);
    if ((await leftOf(site, () => new Date())).length === 0) return undefined;
    const what = path === undefined ? "Node agents" : `DaemonSet ${facts.namespace}/${path.replace(/^.*\//, "")}`;
    return {
      step: NAME,
      changes: [{ action: "restart", what: `${what}: ${facts.nodes.length} nodes, one at a time` }],
      ...(await preflight(site, path)),
      estimatedSeconds: Math.max(1, facts.nodes.length) * SECONDS_PER_NODE,
      data: {},
    };
  },

  remaining: (site) => leftOf(site, site.now),

  async act(site) {
    const { objects, facts, release } = site;
    const path = (await agentsPath(objects, facts.namespace)) ?? daemonSetPath(facts.namespace, identity.nodeAgent);
    await waitForNodes(site, path, (daemonSet) => formerTemplate(daemonSet, release.version));
  },
};

/** Before the update: what would stop it later, usually while the datastore is locked. */
async function preflight(
  { objects, facts, release }: PlanningSite,
  path: string | undefined,
): Promise<Pick<StepPlan, "obstacles" | "notes">> {
  const isPartlyReadyAccepted = facts.datastore === "etcd";
  const view =
    path === undefined ? undefined : await readRollout(objects, { path, isPartlyReadyAccepted, now: new Date() });
  if (view === undefined) return { obstacles: [], notes: [] };
  const isBegun = formerTemplate(view.daemonSet, release.version) === "";
  return { obstacles: isBegun ? [] : rolloutObstacles(view), notes: rolloutNotes(view) };
}

async function leftOf(site: PlanningSite, now: () => Date): Promise<readonly string[]> {
  const { objects, facts, release, signal } = site;
  const path = await agentsPath(objects, facts.namespace);
  if (path === undefined) return ["There is no DaemonSet of the node agents"];
  const former = formerTemplate(await objects.read(path), release.version);
  if (former !== "") return [former];
  return pendingNodes({ objects, facts, signal, now }, path);
}

/** Empty if the template is that of this release. An image that is named by its digest does not tell. */
function formerTemplate(daemonSet: Fields | undefined, version: string): string {
  const image = agentImage(daemonSet);
  if (image === undefined) return "The DaemonSet has no container of the node agent";
  if (image.includes("@") || image.endsWith(`:${version}`)) return "";
  const name = textIn(fieldsIn(daemonSet, "metadata"), "name");
  return `DaemonSet ${name} still has the image ${quoted(image)}`;
}
