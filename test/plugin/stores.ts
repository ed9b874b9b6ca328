/** The datastores that every test of the plugin runs on, and why one cannot be tried here. */
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import type { StoreKind } from "../support/test-store.ts";

export const STORES: readonly { readonly kind: StoreKind; readonly test: ReturnType<typeof testNeeding> }[] = [
  { kind: "embedded", test: testNeeding(hostProblem()) },
  { kind: "etcd", test: testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd") },
];
