import { identity } from "../identity.ts";

/** Annotation of a Node: the identity of the machine that registered it, so that two hosts cannot use one node name. */
export const MACHINE_ANNOTATION = `${identity.labelPrefix}machine`;

/** Annotation of a Node: when that machine first registered it. Addresses that were assigned earlier may be another machine's. */
export const MACHINE_SINCE_ANNOTATION = `${identity.labelPrefix}machine-since`;
