/**
 * Criteria that need more than a packet: a sidecar that decides about requests, the request, or the identity of the client.
 * Slow and obvious like the judge, and independent of how a sidecar decides. Pure.
 */

import { type HttpPath, matchesHttp, normalRequest } from "../../http/http-match.ts";
import { identity } from "../../identity.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { TCP } from "../../model/protocols.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { isSelected, type LabelCriteria } from "./members.ts";
import type { Packet, PacketRequest } from "./packet.ts";
import type { AnyEndpoint, PolicyResources } from "./resources.ts";
import { DEFAULT_TRUST_DOMAIN } from "./trust-domain.ts";

const ANY_TRUST_DOMAIN = "*";

/** The release of the sidecar that reports to the node agent; `undefined` if none does. */
export function sidecarOf(endpoint: AnyEndpoint): string | undefined {
  return endpoint.kind === "WorkloadEndpoint" ? endpoint.metadata.annotations?.[SIDECAR_ANNOTATION] : undefined;
}

/**
 * Does a packet or request to the endpoint match the `http` of a rule? A packet does if a sidecar decides about the
 * requests that follow. Host endpoints have no sidecar.
 */
export function isHttpMatch(
  { methods = [], paths = [] }: NonNullable<PolicyRule["http"]>,
  { protocol, request }: Packet,
  endpoint: AnyEndpoint,
): boolean {
  if (protocol !== TCP || endpoint.kind !== "WorkloadEndpoint") return false;
  if (request === undefined) return sidecarOf(endpoint) !== undefined;
  return (
    request.http !== undefined && matchesHttp({ methods, paths: paths as HttpPath[] }, normalRequest(request.http))
  );
}

/**
 * Must the service account of an authenticated client meet the criteria, and does it? Labels of the pod itself are not
 * known to the certificate: only what the criteria say of the namespace and the service account counts.
 */
export function isIdentityOf(
  { selector: _, ...ofOwner }: LabelCriteria,
  request: PacketRequest | undefined,
  resources: PolicyResources,
): boolean {
  if (request?.principal === undefined || !Object.values(ofOwner).some(isGiven)) return true;
  const account = accountOf(request);
  if (account === undefined) return false;
  const { namespace, name } = account;
  const profile = `ksa.${namespace}.${name}`;
  if (!resources.profiles.some(({ metadata }) => metadata.name === profile)) return false;
  const labels = {
    [`${identity.labelPrefix}namespace`]: namespace,
    [`${identity.labelPrefix}serviceaccount`]: name,
  };
  const pod = workloadEndpoint.make({ name: "any", namespace, labels }, { profiles: [`kns.${namespace}`, profile] });
  return isSelected(pod, ofOwner, resources);
}

function isGiven(criterion: string | readonly string[] | undefined): boolean {
  return criterion !== undefined && (typeof criterion === "string" ? criterion.trim() : criterion).length > 0;
}

/** `spiffe://TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT`. */
function accountOf({ principal = "", trustDomain = DEFAULT_TRUST_DOMAIN }: PacketRequest) {
  const [scheme, empty, domain = "", ns, namespace = "", sa, name = "", ...more] = principal.split("/");
  const isSpiffe = scheme === "spiffe:" && empty === "" && ns === "ns" && sa === "sa" && more.length === 0;
  const isTrusted = trustDomain === ANY_TRUST_DOMAIN ? /^[a-z0-9._-]+$/.test(domain) : domain === trustDomain;
  return isSpiffe && isTrusted && namespace !== "" && name !== "" ? { namespace, name } : undefined;
}
