import { loadOnce } from "../load-once.ts";

/** Most calls need neither. */
export const loadPolicyTableCheck = loadOnce(() => import("./require-policy-table.ts"));
export const loadPolicyWait = loadOnce(() => import("./await-policy-setup.ts"));
