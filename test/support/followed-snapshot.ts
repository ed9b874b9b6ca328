/** What the operator follows, as a test says it is. */
import { identity } from "../../src/identity.ts";
import { type FollowedRow, type FollowedSnapshot, followedKey } from "../../src/operator/followed-objects.ts";
import type { LiveObject } from "../../src/release/live-object.ts";

const ROWS: readonly FollowedRow[] = [
  "installations",
  "statuses",
  "namespaces",
  "serviceaccounts",
  "configmaps",
  "daemonsets",
  "deployments",
  "poddisruptionbudgets",
  "clusterroles",
  "clusterrolebindings",
  "roles",
  "rolebindings",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "csidrivers",
  "nodes",
  "pods",
  "settings",
  "secrets",
  "agents",
  "platform",
];

export function followedSnapshot(objects: Partial<Record<FollowedRow, readonly LiveObject[]>>): FollowedSnapshot {
  const rows = ROWS.map((row) => {
    const held = new Map((objects[row] ?? []).map((object) => [followedKey(row, object.metadata), object]));
    return [row, held] as const;
  });
  return Object.fromEntries(rows) as unknown as FollowedSnapshot;
}

interface Members {
  readonly metadata?: object;
  readonly [field: string]: unknown;
}

/** An object that the operator has applied. */
export function liveObject(kind: string, name: string, members: Members = {}): LiveObject {
  const { metadata, ...others } = members;
  const managedFields = [{ manager: identity.operator, operation: "Apply" }];
  return {
    apiVersion: "v1",
    kind,
    ...others,
    metadata: { name, uid: `uid of ${name}`, resourceVersion: "1", managedFields, ...metadata },
  };
}
