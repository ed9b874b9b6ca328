/** What each field means, by its kind and path: one file in `descriptions/` for related kinds. */
import { ADDRESS_KINDS } from "./address-kinds.ts";
import { BGP_KINDS } from "./bgp-kinds.ts";
import { CLUSTER_KINDS } from "./cluster-kinds.ts";
import { ENDPOINT_KINDS } from "./endpoint-kinds.ts";
import type { KindDescriptions } from "./fields.ts";
import { INSTALLATION } from "./installation.ts";
import { KUBE_CONTROLLERS_CONFIGURATION } from "./kube-controllers-configuration.ts";
import { ALL_KINDS } from "./metadata.ts";
import { NODE_AGENT_CONFIGURATION } from "./node-agent-configuration.ts";
import { POLICY_KINDS } from "./policy-kinds.ts";

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
