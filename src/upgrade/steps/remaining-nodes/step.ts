/**
 * Nodes that the rolling update went on without, so that the datastore could be unlocked. Until they are updated, their
 * former agents must find the former storage locked: what they assigned there, others would assign again.
 */
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { agentsPath, daemonSetPath } from "../../engine/agents.ts";
import { FORMER_AGENT_IS_BEHIND } from "../../engine/lock-text.ts";
import type { Step, StepSite } from "../../engine/step.ts";
import { lockGuard } from "../../former-storage/guard-lock.ts";
import { gainedAddresses, lateAddresses, refuseLateAddresses } from "../../former-storage/late-addresses.ts";
import { formerLock } from "../../former-storage/lock.ts";
import { readFormer } from "../../former-storage/read-former.ts";
import { IPAM_PREFIXES, readRecords } from "../../former-storage/stored-records.ts";
import { pendingNodes, waitForNodes } from "../../nodes/wait-for-nodes.ts";

export const REMAINING_NODES = "remaining-nodes";

export const remainingNodesStep: Step = {
  name: REMAINING_NODES,
  title: "Update the nodes that the rolling update went on without",
  rule: 7,
  why: "What only former node agents use is removed after this. The datastore is unlocked meanwhile.",
  async plan({ facts }) {
    if (facts.storage !== "former") return undefined;
    const notes = ["nothing to do, unless a node stalls or is not ready while the datastore is locked"];
    return { step: REMAINING_NODES, changes: [], obstacles: [], notes, estimatedSeconds: 0, data: {} };
  },
  async remaining(site) {
    const isUnlocked = (await formerLock(site.objects)) === "unlocked";
    return [
      ...(isUnlocked ? ["the former storage is not locked"] : []),
      ...(await pendingNodes(site, await pathOf(site))),
    ];
  },
  async act(site) {
    const guard = lockGuard(site, "former");
    try {
      await waitForNodes(site, await pathOf(site), { onLook: () => guard.look() });
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "not-ready") throw failure;
      throw new PluginError(
        "not-ready",
        `The datastore is unlocked, but not all nodes are updated. ${failure.message}`,
        { details: REMEDY, cause: failure },
      );
    }
    await refuseTwiceAssigned(site);
  },
  /** Also what was assigned while no run looked on. */
  async verify(site) {
    try {
      await refuseTwiceAssigned(site);
      return [];
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "resource-in-use") throw failure;
      return [`${failure.message}: ${failure.details}`];
    }
  },
};

const REMEDY =
  "no pod starts on these nodes until then: their former agents assign nothing, because the former storage stays locked. And " +
  `${FORMER_AGENT_IS_BEHIND}. Repair each node, or delete its Node if it does not come back, and run upgrade apply again`;

/** What former agents have assigned while somebody had unlocked their storage. */
async function refuseTwiceAssigned(site: StepSite): Promise<void> {
  // Its definitions may be deleted when the upgrade is complete.
  if ((await formerLock(site.objects)) === "absent") return;
  const { records } = await readFormer(site.objects);
  const present = await readRecords(await site.openDatastore(), IPAM_PREFIXES);
  await refuseLateAddresses(site.objects, await gainedAddresses(site, lateAddresses(records, present)));
}

async function pathOf({ objects, facts }: StepSite): Promise<string> {
  return (await agentsPath(objects, facts.namespace)) ?? daemonSetPath(facts.namespace, identity.nodeAgent);
}
