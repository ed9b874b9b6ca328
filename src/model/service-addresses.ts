/**
 * The addresses and ports of the orchestrator's Services, so that a connection to one can be named. Derived from its objects
 * on every read; no release writes such a record. Pure.
 */

import { type ResourceName, resourceKey, resourcesPrefix } from "./keys.ts";
import { addressesOfService } from "./local-service.ts";
import { partOf } from "./pod-endpoint.ts";
import { protocolNumber } from "./protocols.ts";
import { objectsIn } from "./shape.ts";
import { parseStored } from "./stored.ts";

const PLURAL = "serviceaddresses";

export interface ServiceAddresses {
  readonly namespace: string;
  readonly name: string;
  /** Of the cluster, external ones and those of load balancers, as the orchestrator writes them. */
  readonly addresses: readonly string[];
  readonly ports: readonly ServicePort[];
}

export interface ServicePort {
  /** IP protocol number. */
  readonly protocol: number;
  readonly port: number;
  /** On every node. */
  readonly nodePort?: number;
}

export const SERVICE_ADDRESSES_PREFIX = resourcesPrefix(PLURAL);

export function serviceAddressesKey(name: ResourceName): string {
  return resourceKey(PLURAL, name);
}

/** `undefined` if it has no address. */
export function serviceAddressesOf({
  metadata,
  ...service
}: {
  readonly metadata: ResourceName;
  readonly [field: string]: unknown;
}): ServiceAddresses | undefined {
  const { clusterIPs, externalIPs, loadBalancerIPs } = addressesOfService(service);
  // "None" and the empty text are not addresses.
  const addresses = [...clusterIPs, ...externalIPs, ...loadBalancerIPs].filter((text) => /[.:]/.test(text));
  if (addresses.length === 0) return undefined;
  const ports = objectsIn(partOf(service, "spec")["ports"]).flatMap(({ protocol, port, nodePort }) => {
    const number = protocolNumber(String(protocol ?? "TCP"));
    if (number === undefined || typeof port !== "number") return [];
    return [{ protocol: number, port, ...(typeof nodePort === "number" ? { nodePort } : {}) }];
  });
  return { namespace: metadata.namespace ?? "", name: metadata.name, addresses, ports };
}

/** The text is of `serviceAddressesOf()`, in the same process. */
export function readServiceAddresses(text: string, key: string): ServiceAddresses {
  return parseStored(text, "Service", key) as ServiceAddresses;
}
