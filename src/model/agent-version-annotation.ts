import { identity } from "../identity.ts";

/** Annotation of a Node: the release of the node agent that last started there. */
export const AGENT_VERSION_ANNOTATION = `${identity.labelPrefix}agent-version`;
