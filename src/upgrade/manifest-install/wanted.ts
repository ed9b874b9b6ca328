/** What the step `manifest` makes of a cluster: data only, kept in the plan. */
import type { NodeAgentConfigurationSpec } from "../../model/node-agent-configuration.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import type { Obstacle } from "../engine/facts.ts";

/**
 * "whole": the object becomes exactly this. "add": what is there stays, because pods of the earlier release still need it
 * until the last of them is replaced.
 */
export interface WantedObject {
  readonly object: KubeObject;
  readonly mode: "whole" | "add";
}

/** Fields of NodeAgentConfiguration `default` that were variables before. */
export interface WantedSettings {
  /** Set, whatever the resource has. */
  readonly settings: NodeAgentConfigurationSpec;
  /** Values that are the usual ones: set only if the resource has another one. */
  readonly usualSettings?: NodeAgentConfigurationSpec;
  /** Set only if the resource has no value: usual in earlier releases, and other than those of this one. */
  readonly formerDefaults?: NodeAgentConfigurationSpec;
}

export interface WantedManifest extends WantedSettings {
  /** In the order of application. */
  readonly objects: readonly WantedObject[];
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}
