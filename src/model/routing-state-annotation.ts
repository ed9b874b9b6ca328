import { identity } from "../identity.ts";

/** Annotation of a Node: what its agent says of the BGP sessions, tunnels and routes of the node. Nothing is computed from it. */
export const ROUTING_STATE_ANNOTATION = `${identity.labelPrefix}routing-state`;
