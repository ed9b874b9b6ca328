import { loadOnce } from "../load-once.ts";

/** For addresses of another IPAM plugin: with our own, nothing of it is loaded. */
export const loadDelegation = loadOnce(() => import("./delegated-addresses.ts"));
