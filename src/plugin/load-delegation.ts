import { loadOnce } from "../load-once.ts";

/** Loaded only if addresses come from another IPAM plugin. */
export const loadDelegation = loadOnce(() => import("./delegated-addresses.ts"));
