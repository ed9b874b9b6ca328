/** The steps of a deletion, and what they are decided from. Pure. */

import type { KubeObject } from "../release/kube-object.ts";
import type { LiveObject } from "../release/live-object.ts";
import type { FollowedSnapshot, Namespaces } from "./followed-objects.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./request-deletion.ts";

export type DeletionStep =
  | { readonly kind: "delete"; readonly objects: readonly LiveObject[]; readonly why: string }
  | {
      readonly kind: "wait";
      readonly message: string;
      readonly problem?: string;
      readonly reason?: "NodeNotReady";
      /** Deleted, if there is such an object. */
      readonly unfollowed?: KubeObject;
    }
  /** Applies the DaemonSet that cleans up the nodes. */
  | { readonly kind: "clean up nodes" }
  /** Records that nothing waits for the nodes any more. `unclean`: names of those that were not cleaned up. */
  | { readonly kind: "nodes are done"; readonly unclean: readonly string[] }
  | { readonly kind: "finish" };

export interface DeletionView {
  readonly snapshot: FollowedSnapshot;
  readonly namespaces: Namespaces;
  /** That is being deleted. */
  readonly installation: LiveObject;
  readonly now: Date;
}

export const WHY_DELETED = "the Installation is being deleted";

/** How long a deletion waits for a node that does not respond, and for a pod that does not end. */
export const GRACE_MILLISECONDS = 5 * 60_000;

export const SKIP_REMEDY = `to delete the Installation without it, run "kubectl annotate installation default ${SKIP_CLEANUP_ANNOTATION}=true"`;

export function isAnnotated({ metadata }: LiveObject, annotation: string): boolean {
  return metadata.annotations?.[annotation] === "true";
}

/** Milliseconds since 1970; 0 if there is none. */
export function latestOf(times: readonly (string | undefined)[]): number {
  return Math.max(0, ...times.map((time) => Date.parse(time ?? "")).filter((time) => !Number.isNaN(time)));
}
