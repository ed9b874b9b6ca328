/** What the step `manifest` makes of a cluster: data only, kept in the plan. */
import type { NodeAgentConfigurationSpec } from "../../model/node-agent-configuration.ts";
import type { KubeObject } from "../../operator/kube-object.ts";
import type { Obstacle } from "../facts.ts";

/**
 * "whole": the object becomes exactly this. "add": what is there stays, because pods of the earlier release still need it
 * until the last of them is replaced.
 */
export interface WantedObject {
  readonly object: KubeObject;
  readonly mode: "whole" | "add";
}

export interface WantedManifest {
  /** In the order of application. */
  readonly objects: readonly WantedObject[];
  /** Fields of NodeAgentConfiguration `default` that were variables before. */
  readonly settings: NodeAgentConfigurationSpec;
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}
