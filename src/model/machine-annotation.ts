import { identity } from "../identity.ts";

/** Annotation of a Node: the identity of the machine that registered it, so that two hosts cannot use one node name. */
export const MACHINE_ANNOTATION = `${identity.labelPrefix}machine`;
