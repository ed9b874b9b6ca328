/**
 * Whether the datastore may be used: what ClusterInformation says.
 *
 * A datastore without one was never made ready. The embedded one belongs to
 * this host alone and is made ready by whoever uses it first; any other is the
 * administrator's.
 */
import type { Change, Entry, Wanted } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { API_VERSION, identity } from "../identity.ts";
import type { ClusterInformation } from "../model/cluster-information.ts";
import { resourceKey } from "../model/keys.ts";
import { readStoredReadiness } from "../model/stored-resources.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });

export const WANTED_CLUSTER: Wanted = { kind: "key", key: KEY };

export interface Newcomer {
  /** Who makes a bare datastore ready. */
  readonly whenBare: "create" | "refuse" | "accept";
  readonly now: Date;
  readonly uid: string;
}

/** Throws unless the datastore is ready; answers what makes a bare one ready, if that is ours to do. */
export function requireReady(
  answer: readonly Entry[] | undefined,
  { whenBare, now, uid }: Newcomer,
): readonly Change[] {
  const entry = answer?.[0];
  if (entry) {
    if (readStoredReadiness(entry.value, entry.key)) return [];
    throw new PluginError(
      "try-again-later",
      "Cannot use the datastore: its ClusterInformation says that it is not ready",
      {
        details: "an upgrade or a migration may be under way",
      },
    );
  }
  if (whenBare === "create") return [readyChange(now, uid)];
  if (whenBare === "accept") return [];
  throw new PluginError("try-again-later", "Cannot use the datastore: it holds no ClusterInformation", {
    details: `make it ready with: ${identity.adminTool} datastore init`,
  });
}

function readyChange(now: Date, uid: string): Change {
  const ready: ClusterInformation = {
    apiVersion: API_VERSION,
    kind: "ClusterInformation",
    metadata: { name: "default", uid, creationTimestamp: now.toISOString() },
    spec: { clusterGUID: uid.replaceAll("-", ""), datastoreReady: true },
  };
  return { kind: "create", key: KEY, value: JSON.stringify(ready) };
}
