/** What is asked of the detection, what it returns, and what each of its parts returns: found, or the reason why only the user can say it. */
import type { Datastore } from "../../datastore/datastore.ts";
import type { Facts, InstallMethod, ManifestNetwork, Obstacle } from "../engine/facts.ts";

export interface DetectionRequest {
  /** The release of this tool. */
  readonly target: string;
  /** API groups that the search for owner references leaves out. */
  readonly ignoredGroups: readonly string[];
  /** What the user has said, where the cluster is ambiguous. */
  readonly method?: InstallMethod["kind"];
  readonly network?: ManifestNetwork;
  readonly datastore?: Facts["datastore"];
  readonly version?: string;
  /** The chart's release, `NAMESPACE/NAME`. */
  readonly release?: string;
  /** The datastore of a cluster that uses etcd: what is in it is not in the orchestrator's API. The caller closes it. */
  openDatastore?(): Promise<Datastore>;
}

export type Detection =
  | { readonly kind: "found"; readonly facts: Facts }
  /** Nothing can be planned. `partial`: what is known nevertheless. */
  | { readonly kind: "unclear"; readonly obstacles: readonly Obstacle[]; readonly partial: Partial<Facts> };

/** One thing that `detect` looks for: found, or the reason why only the user can say it. */
export type Found<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly obstacle: Obstacle };

export function found<T>(value: T): Found<T> {
  return { ok: true, value };
}

export function unclear(message: string, remedy: string): Found<never> {
  return { ok: false, obstacle: { message, remedy } };
}
