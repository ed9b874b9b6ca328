/** The nodes that a connectivity test uses. Pure. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { ClusterNode } from "../cluster/nodes.ts";
import type { TestNode } from "./checks.ts";

const DEFAULT_NODES = 2;

/** Those that are named, or two that are Ready; workers before nodes of the control plane. */
export function chooseTestNodes(nodes: readonly ClusterNode[], named: readonly string[]): readonly TestNode[] {
  const chosen = named.length > 0 ? named.map((name) => namedNode(nodes, name)) : usableNodes(nodes);
  if (chosen.length === 0) {
    const states = nodes.map(({ name, problem = "it is cordoned" }) => `node ${quoted(name)}: ${problem}`);
    throw new PluginError("resource-missing", "Cannot test the connectivity: no node is Ready and schedulable", {
      details: states.join("; ") || "the cluster has no node",
    });
  }
  return chosen.map(({ name, addresses }, index) => ({ name, addresses, number: index + 1 }));
}

function usableNodes(nodes: readonly ClusterNode[]): readonly ClusterNode[] {
  const usable = nodes.filter(({ isReady, isSchedulable }) => isReady && isSchedulable);
  const [controlPlane, workers] = [usable.filter(isOfControlPlane), usable.filter((node) => !isOfControlPlane(node))];
  return [...workers, ...controlPlane].slice(0, DEFAULT_NODES);
}

function isOfControlPlane({ isControlPlane }: ClusterNode): boolean {
  return isControlPlane;
}

function namedNode(nodes: readonly ClusterNode[], name: string): ClusterNode {
  const found = nodes.find((node) => node.name === name);
  if (found !== undefined) return found;
  throw new PluginError("resource-missing", `Cannot test the connectivity: there is no node ${quoted(name)}`, {
    details: `use ${nodes.map((node) => node.name).join(", ")}`,
  });
}
