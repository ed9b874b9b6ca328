/** The settings of a node's agent, for commands that run on the node. */
import type { Datastore } from "../datastore/datastore.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { readEach } from "../datastore/read-each.ts";
import { isForbidden } from "../kube/require-ok.ts";
import { NODE_AGENT_CONFIGURATION } from "../model/kinds.ts";
import { type NodeAgentSettings, nodeAgentSettings } from "../model/node-agent-configuration.ts";

/**
 * Unreadable records count as absent, and so do all if they are forbidden: a kubelet's own role does not allow to read them.
 * Listed, not read one by one: the agent's role allows only that.
 */
export async function readSettings(store: Datastore, node: string): Promise<NodeAgentSettings> {
  const entries = await readAllEntries(store, NODE_AGENT_CONFIGURATION.prefix()).catch(noneIfForbidden);
  const { readable } = readEach(entries, ({ value, key }) => NODE_AGENT_CONFIGURATION.codec.read(value, key));
  return nodeAgentSettings(readable, node);
}

function noneIfForbidden(failure: unknown): readonly never[] {
  if (isForbidden(failure)) return [];
  throw failure;
}
