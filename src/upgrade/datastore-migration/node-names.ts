/** Nodes have the orchestrator's names in its API: what refers to a node by its name on etcd is renamed. Pure. */
import { type BlockAffinity, readAffinity, writeAffinity } from "../../model/block-affinity.ts";
import { affineNode, hostAffinity, type IPAMBlock, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { LAST_NODE_ATTRIBUTE } from "../../model/kept-address.ts";
import type { Node } from "../../model/node.ts";
import { orchestratorReference } from "../../model/node-reference.ts";
import { isObject } from "../../model/shape.ts";
import { TUNNEL_ADDRESSES } from "../../model/tunnel-address.ts";
import { quoted } from "../../quote.ts";
import type { Obstacle } from "../engine/facts.ts";

/** By the name on etcd. */
export type NodeNames = ReadonlyMap<string, string>;

export function nodeNames(nodes: readonly Node[]): {
  readonly names: NodeNames;
  readonly obstacles: readonly Obstacle[];
} {
  const names = new Map(
    nodes.flatMap(({ metadata, spec }) => {
      const name = orchestratorReference(spec);
      return name === undefined ? [] : [[metadata.name, name] as const];
    }),
  );
  const unknown = nodes.filter(({ metadata }) => !names.has(metadata.name));
  const shared = [...Map.groupBy(names, ([, name]) => name)].filter(([, members]) => members.length > 1);
  return {
    names,
    obstacles: [
      ...unknown.map(({ metadata: { name } }) => ({
        message: `Node ${quoted(name)} does not say which node of the orchestrator it is`,
        remedy: `let its agent register it with access to the Kubernetes API, add spec.orchRefs [{"orchestrator":"k8s","nodeName":"NAME"}], or delete it`,
      })),
      ...shared.map(([name, members]) => ({
        message: `Nodes ${members.map(([each]) => quoted(each)).join(" and ")} are both node ${quoted(name)} of the orchestrator`,
        remedy: "correct spec.orchRefs of one of them, or delete it",
      })),
    ],
  };
}

export function renamed(names: NodeNames, node: string): string {
  return names.get(node) ?? node;
}

/** Attributes of an allocation that name a node. */
const NODE_NAMES: ReadonlySet<string> = new Set([NODE_ATTRIBUTE, LAST_NODE_ATTRIBUTE]);

export function renamedBlock(block: IPAMBlock, names: NodeNames): IPAMBlock {
  const owner = affineNode(block);
  return {
    ...block,
    ...(owner === undefined ? {} : { affinity: hostAffinity(renamed(names, owner)) }),
    attributes: block.attributes.map(({ handleId, secondary }) => ({
      ...(handleId === undefined ? {} : { handleId: renamedHandle(handleId, names) }),
      secondary: Object.fromEntries(
        Object.entries(secondary).map(([name, text]) => [name, NODE_NAMES.has(name) ? renamed(names, text) : text]),
      ),
    })),
  };
}

/** The address of a tunnel has the name of its node in its handle. */
export function renamedHandle(handleId: string, names: NodeNames): string {
  const prefix = TUNNEL_ADDRESSES.find((kind) => handleId.startsWith(kind.handlePrefix))?.handlePrefix;
  return prefix === undefined ? handleId : `${prefix}${renamed(names, handleId.slice(prefix.length))}`;
}

export function renamedAffinity(text: string, key: string, owner: Pick<BlockAffinity, "node" | "cidr">): string {
  return writeAffinity(readAffinity(text, key, owner));
}

const NODE_SETTINGS = "node.";

/** Settings of one node: `node.NAME`. */
export function renamedResource(name: string, plural: string, names: NodeNames): string {
  const hasNodeSettings = plural === "nodeagentconfigurations" || plural === "bgpconfigurations";
  if (!hasNodeSettings || !name.startsWith(NODE_SETTINGS)) return name;
  return `${NODE_SETTINGS}${renamed(names, name.slice(NODE_SETTINGS.length))}`;
}

/** Host endpoints and BGP peers name their node. */
export function renamedSpec(spec: unknown, names: NodeNames): unknown {
  if (!isObject(spec) || typeof spec["node"] !== "string") return spec;
  return { ...spec, node: renamed(names, spec["node"]) };
}
