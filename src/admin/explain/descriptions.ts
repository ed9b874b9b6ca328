/** What each field means, by its kind and path: one file in `descriptions/` for related kinds. */
import { ADDRESS_KINDS } from "./descriptions/address-kinds.ts";
import { BGP_KINDS } from "./descriptions/bgp-kinds.ts";
import { CLUSTER_KINDS } from "./descriptions/cluster-kinds.ts";
import { ENDPOINT_KINDS } from "./descriptions/endpoint-kinds.ts";
import type { KindDescriptions } from "./descriptions/fields.ts";
import { INSTALLATION } from "./descriptions/installation.ts";
import { KUBE_CONTROLLERS_CONFIGURATION } from "./descriptions/kube-controllers-configuration.ts";
import { ALL_KINDS } from "./descriptions/metadata.ts";
import { NODE_AGENT_CONFIGURATION } from "./descriptions/node-agent-configuration.ts";
import { POLICY_KINDS } from "./descriptions/policy-kinds.ts";

const KINDS: KindDescriptions = {
  ...ADDRESS_KINDS,
  ...CLUSTER_KINDS,
  ...ENDPOINT_KINDS,
  ...POLICY_KINDS,
  ...NODE_AGENT_CONFIGURATION,
  ...KUBE_CONTROLLERS_CONFIGURATION,
  ...BGP_KINDS,
  ...INSTALLATION,
};

/** `path`: "" for the kind itself, "spec.cidr". */
export function descriptionOf(kind: string, path: string): string | undefined {
  return KINDS[kind]?.[path] ?? ALL_KINDS[path];
}
