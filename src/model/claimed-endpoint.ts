/**
 * With the orchestrator's API as the datastore an endpoint is its pod, and what the plugin recorded is in annotations of the
 * pod, which its users can write. So the record of the endpoint has the annotations' words in `spec`, and in an annotation
 * of its own, which is not the pod's, what the kubelet reports: users cannot write that.
 *
 * `withoutClaims` leaves in `spec` what is reported, whether the annotations name it or not: no annotation takes a pod out of
 * the sets of policies. The rest is in `status.claims`. Claims count only if something else proves them
 * (ipam/proven-endpoint.ts), so whoever ignores them believes too little, never too much. Pure.
 */
import { identity } from "../identity.ts";
import { parseJson } from "../parse-json.ts";
import { isObject } from "./shape.ts";
import type { WorkloadEndpoint, WorkloadEndpointSpec } from "./workload-endpoint.ts";

/** `{"podIPs": ["10.0.0.5/32"], "unreadable": []}`: only the endpoint of a pod whose annotations name addresses has it. */
export const REPORTED_ANNOTATION = `${identity.labelPrefix}reported`;

/** What only annotations say. */
export interface Claims {
  /** All annotated addresses in their order, also those that are reported. */
  readonly ipNetworks: readonly string[];
  readonly ipNATs: NonNullable<WorkloadEndpointSpec["ipNATs"]>;
  readonly sourcePrefixes: readonly string[];
  /** Texts that are none of these. */
  readonly unreadable: readonly string[];
}

export function withoutClaims(endpoint: WorkloadEndpoint): WorkloadEndpoint {
  const { [REPORTED_ANNOTATION]: text, ...annotations } = endpoint.metadata.annotations ?? {};
  if (text === undefined) return endpoint;
  const { podIPs, unreadable } = reportedIn(text);
  const { ipNetworks = [], ipNATs = [], allowSpoofedSourcePrefixes: sourcePrefixes = [], ...rest } = endpoint.spec;
  const reported = ipNetworks.filter((network) => podIPs.includes(network));
  const unnamed = podIPs.filter((network) => !ipNetworks.includes(network));
  const hasClaims =
    reported.length < ipNetworks.length ||
    unnamed.length + ipNATs.length + sourcePrefixes.length + unreadable.length > 0;
  const claims: Claims = { ipNetworks, ipNATs, sourcePrefixes, unreadable };
  const status = isObject(endpoint.status) ? endpoint.status : {};
  return {
    ...endpoint,
    metadata: { ...endpoint.metadata, annotations },
    spec: { ...rest, ipNetworks: [...reported, ...unnamed] },
    ...(hasClaims ? { status: { ...status, claims } } : {}),
  };
}

function reportedIn(text: string): { readonly podIPs: readonly string[]; readonly unreadable: readonly string[] } {
  const read: unknown = parseJson(text);
  const texts = (name: string) => {
    const list = isObject(read) ? read[name] : undefined;
    return Array.isArray(list) ? list.map(String) : [];
  };
  return { podIPs: texts("podIPs"), unreadable: texts("unreadable") };
}

/** Of an endpoint that `withoutClaims` returned. */
export function claimsOf({ status }: Pick<WorkloadEndpoint, "status">): Claims | undefined {
  // Only `withoutClaims` sets it.
  return isObject(status) ? (status["claims"] as Claims | undefined) : undefined;
}
