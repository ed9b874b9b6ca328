/**
 * Nodes that the rolling update went on without, so that the datastore could be unlocked. Until they are updated, their
 * former agents must find the former storage locked: what they assigned there, others would assign again.
 */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { agentsPath, daemonSetPath } from "../rollout/agents.ts";
import { pendingNodes, waitForNodes } from "../rollout/wait.ts";
import type { Step, StepSite } from "../step.ts";

const NAME = "remaining-nodes";

export const remainingNodesStep: Step = {
  name: NAME,
  title: "Update the nodes that the rolling update went on without",
  rule: 7,
  why: "What only former node agents use is removed after this. The datastore is unlocked meanwhile.",
  async plan({ facts }) {
    if (facts.storage !== "former") return undefined;
    const notes = ["nothing to do, unless a node stalls or is not ready while the datastore is locked"];
    return { step: NAME, changes: [], obstacles: [], notes, estimatedSeconds: 0, data: {} };
  },
  async remaining(site) {
    return pendingNodes(site, await pathOf(site));
  },
  async act(site) {
    try {
      await waitForNodes(site, await pathOf(site));
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "not-ready") throw failure;
      throw new PluginError(
        "not-ready",
        `The datastore is unlocked, but not all nodes are updated. ${failure.message}`,
        { details: REMEDY, cause: failure },
      );
    }
  },
};

const REMEDY =
  "no pod starts on these nodes until then: their former agents assign nothing, because the former storage stays locked. " +
  "Repair each node, or delete its Node if it does not come back, and run upgrade apply again";

async function pathOf({ objects, facts }: StepSite): Promise<string> {
  return (await agentsPath(objects, facts.namespace)) ?? daemonSetPath(facts.namespace, identity.nodeAgent);
}
