/** Rules 7 and 8, and for every way of installation: each node gets a node agent of this release. */
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { groupPath } from "../../operator/object-kinds.ts";
import { quoted } from "../../quote.ts";
import { FORMER_CANAL } from "../former-names.ts";
import { fieldsIn, itemsIn, named, podSpecOf, textIn } from "../manifest/workload.ts";
import { pendingNodes, waitForNodes } from "../rollout/wait.ts";
import type { PlanningSite, Step } from "../step.ts";

const NAME = "rollout";
const SECONDS_PER_NODE = 20;

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
      obstacles: [],
      notes: [],
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

async function leftOf(site: PlanningSite, now: () => Date): Promise<readonly string[]> {
  const { objects, facts, release, signal } = site;
  const path = await agentsPath(objects, facts.namespace);
  if (path === undefined) return ["There is no DaemonSet of the node agents"];
  const former = formerTemplate(await objects.read(path), release.version);
  if (former !== "") return [former];
  return pendingNodes({ objects, facts, signal, now }, path);
}

function daemonSetPath(namespace: string, name: string): string {
  return `${groupPath("apps/v1")}/namespaces/${namespace}/daemonsets/${name}`;
}

/** The DaemonSet whose pods are the node agents; an upgraded one with flannel keeps its name. */
async function agentsPath(objects: ClusterObjects, namespace: string): Promise<string | undefined> {
  for (const name of [identity.nodeAgent, FORMER_CANAL.daemonSet, FORMER_CANAL.etcdDaemonSet]) {
    const path = daemonSetPath(namespace, name);
    const daemonSet = await objects.read(path);
    if (agentImage(daemonSet) !== undefined) return path;
  }
  return undefined;
}

function agentImage(daemonSet: Fields | undefined): string | undefined {
  return textIn(named(itemsIn(podSpecOf(daemonSet), "containers"), identity.nodeAgent), "image");
}

/** Empty if the template is that of this release. An image that is named by its digest does not tell. */
function formerTemplate(daemonSet: Fields | undefined, version: string): string {
  const image = agentImage(daemonSet);
  if (image === undefined) return "The DaemonSet has no container of the node agent";
  if (image.includes("@") || image.endsWith(`:${version}`)) return "";
  const name = textIn(fieldsIn(daemonSet, "metadata"), "name");
  return `DaemonSet ${name} still has the image ${quoted(image)}`;
}
