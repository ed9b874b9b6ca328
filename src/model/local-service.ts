/**
 * Services with `externalTrafficPolicy: Local`, and the nodes that have ready endpoints of a Service. Derived from the
 * orchestrator's objects on every read; no release writes such a record. Pure.
 */
import type { Family } from "../ip/address.ts";
import { type ResourceName, resourceKey, resourcesPrefix } from "./keys.ts";
import { partOf, textOf } from "./pod-endpoint.ts";
import { type EndpointSlice, SERVICE_LABEL } from "./service-endpoints.ts";
import { objectsIn, textsIn } from "./shape.ts";
import { parseStored } from "./stored.ts";

const SERVICES = "services";
const NODES = "servicenodes";

/** Texts as the orchestrator writes them. */
export interface LocalService {
  readonly namespace: string;
  readonly name: string;
  readonly clusterIPs: readonly string[];
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
}

/** As far as one EndpointSlice says. */
export interface ServiceNodes {
  readonly namespace: string;
  readonly service: string;
  readonly family: Family;
  readonly nodes: readonly string[];
}

type ApiObject = EndpointSlice;
type Fields = Readonly<Record<string, unknown>>;

export const LOCAL_SERVICES_PREFIX = resourcesPrefix(SERVICES);
export const SERVICE_NODES_PREFIX = resourcesPrefix(NODES);

export function localServiceKey(name: ResourceName): string {
  return resourceKey(SERVICES, name);
}

/** `name`: of the slice; a Service may have many. */
export function serviceNodesKey(name: ResourceName): string {
  return resourceKey(NODES, name);
}

/** `undefined` if any node may get its packets. */
export function localServiceOf({ metadata, ...service }: ApiObject): LocalService | undefined {
  if (textOf(partOf(service, "spec"), "externalTrafficPolicy") !== "Local") return undefined;
  return { namespace: metadata.namespace ?? "", name: metadata.name, ...addressesOfService(service) };
}

/** `service`: the orchestrator's object. */
export function addressesOfService(service: Fields): Omit<LocalService, "namespace" | "name"> {
  const [spec, status] = [partOf(service, "spec"), partOf(service, "status")];
  return {
    // "None" is not an address.
    clusterIPs: textsIn(spec["clusterIPs"]),
    externalIPs: textsIn(spec["externalIPs"]),
    loadBalancerIPs: objectsIn(partOf(status, "loadBalancer")["ingress"]).flatMap((each) => textOf(each, "ip") ?? []),
  };
}

/** `undefined` if it does not belong to a Service, or is not about addresses. */
export function serviceNodesOf({ metadata, ...slice }: ApiObject): ServiceNodes | undefined {
  const service = metadata.labels?.[SERVICE_LABEL];
  const family = FAMILY_OF[String(slice["addressType"])];
  if (service === undefined || service === "" || family === undefined) return undefined;
  const ready = objectsIn(slice["endpoints"]).filter(isReady);
  const nodes = new Set(ready.flatMap((each) => textOf(each, "nodeName") ?? []));
  return { namespace: metadata.namespace ?? "", service, family, nodes: [...nodes].sort() };
}

const FAMILY_OF: Readonly<Record<string, Family>> = { IPv4: 4, IPv6: 6 };

/** Conditions that are absent are those of a ready endpoint. A Service may publish endpoints that are not ready as ready, also while they end. */
function isReady(endpoint: Fields): boolean {
  const { ready, terminating } = partOf(endpoint, "conditions");
  return ready !== false && terminating !== true;
}

/** The text is of `localServiceOf()`, in the same process. */
export function readLocalService(text: string, key: string): LocalService {
  return parseStored(text, "Service", key) as LocalService;
}

/** The text is of `serviceNodesOf()`, in the same process. */
export function readServiceNodes(text: string, key: string): ServiceNodes {
  return parseStored(text, "EndpointSlice", key) as ServiceNodes;
}
