/** A GlobalNetworkPolicy of the default tier, for tests of the compiler. */
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../../src/model/global-network-policy.ts";

/** `spec`: what differs from an ordinary policy; not checked. */
export function globalPolicy(name: string, spec: object): GlobalNetworkPolicy {
  const usual = { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false };
  return globalNetworkPolicy.make({ name }, { ...usual, ...spec });
}
