/** Names that the operator gives to what it writes. */
import { identity } from "../identity.ts";

export const FIELD_MANAGER = identity.operator;

/** An administrator sets it to "true" on a rendered object that the operator must not touch. */
export const IGNORE_ANNOTATION = `unsupported.${identity.operatorApiGroup}/ignore`;

/** Keeps the Installation until nothing of it is left in the cluster. */
export const FINALIZER = `${identity.operatorApiGroup}/installation`;

/** The operator sets it to "true" on an Installation that is being deleted when nothing waits for the nodes any more. */
export const CLEANED_UP_ANNOTATION = `${identity.operatorApiGroup}/nodes-cleaned-up`;
