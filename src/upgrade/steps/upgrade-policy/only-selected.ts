/** What the deletion of the temporary policy means for the hosts that it selects. Pure. */

import type { GlobalNetworkPolicy } from "../../../model/global-network-policy.ts";
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { UPGRADE_POLICY } from "../../../model/upgrade-policy.ts";
import type { Direction } from "../../../policy/effective-rule.ts";
import { isBeforeRouting, policiesOf } from "../../../policy/judge/judge.ts";
import type { PolicyResources } from "../../../policy/judge/resources.ts";
import { UPGRADE_MARK } from "../../former-names.ts";

/** Later releases put the tier in front of the names of policies. */
const NAMES: readonly string[] = [UPGRADE_POLICY, `default.${UPGRADE_POLICY}`];

export function upgradePoliciesIn({ globalNetworkPolicies }: PolicyResources): readonly GlobalNetworkPolicy[] {
  return globalNetworkPolicies.filter(({ metadata }) => NAMES.includes(metadata.name));
}

export function isMarked({ metadata }: HostEndpoint): boolean {
  return Object.hasOwn(metadata.labels ?? {}, UPGRADE_MARK);
}

export interface SelectedHost {
  readonly endpoint: string;
  readonly direction: Direction;
  /** `closed`: no policy and no profile remains. `profiles`: they decide. `policies`: other policies decide. */
  readonly afterwards: "closed" | "profiles" | "policies";
}

/** The host endpoints that the temporary policy selects, by direction. */
export function selectedHosts(resources: PolicyResources): readonly SelectedHost[] {
  return resources.hostEndpoints.flatMap((endpoint) =>
    (["ingress", "egress"] as const).flatMap((direction): readonly SelectedHost[] => {
      const policies = policiesOf(endpoint, direction, resources);
      const others = policies.filter(({ metadata }) => !NAMES.includes(metadata.name));
      if (others.length === policies.length) return [];
      const { metadata, spec } = endpoint;
      const deciding = others.filter((policy) => !isBeforeRouting(policy));
      const byProfiles = (spec.profiles ?? []).length > 0 ? "profiles" : "closed";
      return [{ endpoint: metadata.name, direction, afterwards: deciding.length > 0 ? "policies" : byProfiles }];
    }),
  );
}
