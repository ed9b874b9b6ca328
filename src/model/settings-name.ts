/** Names of the settings of nodes (NodeAgentConfiguration, BGPConfiguration): `default` for all nodes, `node.NAME` for one. */
import type { Problem } from "./problem.ts";

export const OF_ALL_NODES = "default";
export const OF_ONE_NODE = "node.";

export function checkSettingsName(name: string): readonly Problem[] {
  if (name === OF_ALL_NODES || (name.startsWith(OF_ONE_NODE) && name !== OF_ONE_NODE)) return [];
  return [{ path: "metadata.name", value: name, message: settingsNameMessage(name) }];
}

/** The rule of the CRDs has the same one, with an expression for the name. */
export function settingsNameMessage(name: string): string {
  return `applies to no node; use "${OF_ALL_NODES}" for all nodes, or "${OF_ONE_NODE}${name}" for the node of that name`;
}
