/** What reports on addresses record about the cluster: which it is, and whether its datastore is locked. */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { readOrExplain } from "../resources/unreadable-remedy.ts";

/** What to run before a command that needs a locked datastore. */
export const LOCK_COMMAND = `${identity.adminTool} datastore migrate lock`;

export interface ClusterState {
  readonly clusterGUID: string;
  readonly clusterType: string;
  /** ClusterInformation says that the datastore is not ready: the node agents and plugins change nothing. */
  readonly isLocked: boolean;
  /** Of ClusterInformation: it changes whenever the datastore is locked or unlocked. */
  readonly revision: string;
}

export async function readClusterState(store: Datastore): Promise<ClusterState> {
  const key = CLUSTER_INFORMATION.key({ name: "default" });
  const [entry] = (await store.read([{ kind: "key", key }])).answers.flat();
  if (entry === undefined) {
    throw new PluginError("resource-missing", "Cannot identify the cluster: the datastore is not initialized", {
      details: `"${identity.adminTool} datastore init" initializes it`,
    });
  }
  const { spec } = readOrExplain(entry, ({ value }) => CLUSTER_INFORMATION.codec.read(value, key));
  return {
    clusterGUID: spec.clusterGUID ?? "",
    clusterType: spec.clusterType ?? "",
    isLocked: spec.datastoreReady === false,
    revision: entry.revision,
  };
}
