/**
 * Nodes as an agent follows them. What others write into their Nodes for people alone is left out, and a Node that is the same
 * without it is no change: otherwise a session that one node loses would let all agents of the cluster compute.
 */
import { type KindSource, sourceOf } from "../datastore/replica/kinds.ts";
import { NODE } from "../model/kinds.ts";
import type { Node } from "../model/node.ts";
import { ROUTING_STATE_ANNOTATION } from "../model/routing-state.ts";

/** `node`: the node of the agent, which is kept whole. */
export function followedNodes(node: string): KindSource<Node> {
  const { prefix, decode } = sourceOf(NODE);
  return {
    prefix,
    equalIsSame: true,
    decode(entry) {
      const decoded = decode(entry);
      return decoded === undefined || decoded.metadata.name === node ? decoded : withoutState(decoded);
    },
  };
}

function withoutState(node: Node): Node {
  const { annotations } = node.metadata;
  if (annotations?.[ROUTING_STATE_ANNOTATION] === undefined) return node;
  const { [ROUTING_STATE_ANNOTATION]: _, ...others } = annotations;
  return { ...node, metadata: { ...node.metadata, annotations: others } };
}
