/**
 * The endpoints of a service, as far as one EndpointSlice contains them. Only the orchestrator's API has them; no
 * release writes such a record. Pure.
 */
import * as v from "valibot";
import { PluginError } from "../errors.ts";
import { formatAddress, parseAddress } from "../ip/address.ts";
import { type ResourceName, resourceKey, resourcesPrefix } from "./keys.ts";
import { formatProblems } from "./problem.ts";
import { protocolNumber } from "./protocols.ts";
import { decodeShape, objectsIn } from "./shape.ts";
import { parseStored } from "./stored.ts";

const PLURAL = "endpointslices";
export const SERVICE_LABEL = "kubernetes.io/service-name";

const schema = v.object({
  namespace: v.string(),
  service: v.string(),
  addresses: v.array(v.string()),
  /** IP protocol numbers. Of all addresses. */
  ports: v.array(v.object({ protocol: v.number(), port: v.number() })),
});

export type ServiceEndpoints = Readonly<v.InferOutput<typeof schema>>;

export const SERVICE_ENDPOINTS_PREFIX = resourcesPrefix(PLURAL);

/** `name`: of the slice; a service may have many. */
export function serviceEndpointsKey(name: ResourceName): string {
  return resourceKey(PLURAL, name);
}

export function readServiceEndpoints(text: string, key: string): ServiceEndpoints {
  const read = decodeShape(schema, parseStored(text, "EndpointSlice", key));
  if (read.ok) return read.value;
  throw new PluginError("record-malformed", `Cannot read EndpointSlice at "${key}": ${formatProblems(read.problems)}`);
}

/** The part of an EndpointSlice that is used here. */
export interface EndpointSlice {
  readonly metadata: ResourceName & { readonly labels?: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

/** `undefined` if it does not belong to a service. Whether an endpoint is ready does not matter: a rule is about where it is. */
export function serviceEndpointsOf({ metadata, ...slice }: EndpointSlice): ServiceEndpoints | undefined {
  const service = metadata.labels?.[SERVICE_LABEL];
  if (service === undefined || service === "") return undefined;
  const addresses = objectsIn(slice["endpoints"])
    .flatMap((endpoint) => (Array.isArray(endpoint["addresses"]) ? endpoint["addresses"] : []))
    .flatMap((text) => parseAddress(String(text)) ?? [])
    .map(formatAddress);
  const ports = objectsIn(slice["ports"]).flatMap(({ protocol, port }) => {
    const number = protocolNumber(String(protocol ?? "TCP"));
    return number === undefined || typeof port !== "number" ? [] : [{ protocol: number, port }];
  });
  return { namespace: metadata.namespace ?? "", service, addresses: [...new Set(addresses)], ports };
}
