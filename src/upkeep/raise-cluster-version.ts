/**
 * Raises the version in ClusterInformation when the agents of all nodes have it. The agent of the last node does, when it
 * records its own; any other one does after a node that was behind has been deleted. It is never lowered.
 */
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { pagesBelow } from "../datastore/pages.ts";
import { PluginError } from "../errors.ts";
import { WANTED_CLUSTER } from "../ipam/cluster.ts";
import { clusterInformation, clusterVersion, withClusterVersion } from "../model/cluster-information.ts";
import { CLUSTER_INFORMATION_KEY } from "../model/keys.ts";
import { NODE } from "../model/kinds.ts";
import { compareReleases, isRelease } from "../model/release.ts";
import { earliestVersion, nodeVersion } from "./node-versions.ts";

const ATTEMPTS = 5;

/** Returns the new version, if it was raised. Reads the nodes only if `own` is later than the version of the cluster. */
export async function raiseClusterVersion(store: Datastore, own: string): Promise<string | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
    if (entry === undefined) return undefined;
    const information = clusterInformation.read(entry.value, entry.key);
    // An upgrade or a migration has locked the datastore: it decides.
    if (information.spec.datastoreReady === false) return undefined;
    const before = clusterVersion(information);
    if (before !== undefined && !isEarlier(before, own)) return undefined;
    const now = await versionOfAllNodes(store, before);
    if (now === undefined) return undefined;
    const value = clusterInformation.write(withClusterVersion(information, now), entry.value);
    const written = await store.commit([
      { kind: "update", key: CLUSTER_INFORMATION_KEY, value, revision: entry.revision },
    ]);
    if (written.ok) return now;
  }
  throw new PluginError("try-again-later", "Cannot raise the version of the cluster: others keep changing it");
}

/** Fails if the cluster has a later release: what an earlier one takes for a leak may not be one. A version that cannot be read does not count. */
export async function refuseLaterCluster(store: Datastore, own: string): Promise<void> {
  const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
  const version = entry && clusterVersion(clusterInformation.read(entry.value, entry.key));
  if (version === undefined || !isEarlier(own, version)) return;
  throw new PluginError(
    "version-incompatible",
    `Does not search for leaked addresses: the cluster has release ${version}, and this agent ${own}`,
    { details: "upgrade the agent of this node" },
  );
}

/** The version that all nodes have; `undefined` if it is not later than `before`, without reading the rest of the nodes. */
async function versionOfAllNodes(store: Datastore, before: string | undefined): Promise<string | undefined> {
  const nodes: Entry[] = [];
  for await (const { entries } of pagesBelow(store, NODE.prefix())) {
    nodes.push(...entries);
    const earliest = earliestVersion(entries.map(nodeVersion));
    const isBehind = earliest === undefined || (before !== undefined && !isEarlier(before, earliest));
    if (entries.length > 0 && isBehind) return undefined;
  }
  return earliestVersion(nodes.map(nodeVersion));
}

/** What is not a release was written by hand, and stays. */
function isEarlier(version: string, other: string): boolean {
  return isRelease(version) && isRelease(other) && compareReleases(version, other) < 0;
}
