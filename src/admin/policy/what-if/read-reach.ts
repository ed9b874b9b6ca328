/** The policies as they are stored, and as they would be, for those who compare both. */
import { policyRequirement } from "../../../config/installed-network.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { nodeAgentSettings } from "../../../model/node-agent-configuration.ts";
import { type ReadPolicy, readPolicy } from "../../../policy/read-resources.ts";
import { Reach, type ReachState } from "../../../policy/what-if/reach.ts";
import type { Call, Files } from "../../main/context.ts";

export interface ComparedPolicy {
  readonly before: ReadPolicy;
  readonly after: ReadPolicy;
  readonly states: { readonly before: ReachState; readonly after: ReachState };
  readonly reach: Reach;
}

export async function readReach(
  context: Call & Files,
  { stored, planned }: { readonly stored: Datastore; readonly planned: Datastore },
): Promise<ComparedPolicy> {
  const before = await readPolicy(stored);
  const after = planned === stored ? before : await readPolicy(planned);
  const { isPolicyRequired } = await policyRequirement(context);
  const states = { before: stateOf(before, isPolicyRequired), after: stateOf(after, isPolicyRequired) };
  return { before, after, states, reach: new Reach(states) };
}

/** Without any policy only a node with a host endpoint, or whose network config wants it, has a policy table. */
function stateOf({ resources, configurations }: ReadPolicy, isPolicyRequired: boolean): ReachState {
  const hasPolicies = resources.networkPolicies.length + resources.globalNetworkPolicies.length > 0;
  const nodes = new Set(resources.hostEndpoints.map(({ spec }) => spec.node));
  return {
    resources,
    settingsOf: (node) => nodeAgentSettings(configurations, node),
    isUnenforcedAt: (node) => !isPolicyRequired && !hasPolicies && !nodes.has(node),
  };
}
