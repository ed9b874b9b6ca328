import { identity } from "../identity.ts";

/** The label of everything that the operator has created, IP pools included. */
export const MANAGED_BY = { "app.kubernetes.io/managed-by": identity.operator } as const;
