/** Services and EndpointSlices of the orchestrator as records that can only be read. */
import {
  LOCAL_SERVICES_PREFIX,
  localServiceKey,
  localServiceOf,
  SERVICE_NODES_PREFIX,
  serviceNodesKey,
  serviceNodesOf,
} from "../../model/local-service.ts";
import { SERVICE_ADDRESSES_PREFIX, serviceAddressesKey, serviceAddressesOf } from "../../model/service-addresses.ts";
import type { ApiObject } from "./api.ts";
import { type KindMapping, type ObjectRecord, readOnly } from "./kind-mapping.ts";

/** Those with `externalTrafficPolicy: Local`, and where the endpoints of all are. */
export const SERVICE_RECORDS: readonly KindMapping[] = [
  {
    ...listed(LOCAL_SERVICES_PREFIX, "/api/v1/services"),
    record: (service) => recordOf(localServiceKey(service.metadata), localServiceOf(service)),
  },
  {
    ...listed(SERVICE_NODES_PREFIX, "/apis/discovery.k8s.io/v1/endpointslices"),
    record: (slice: ApiObject) => recordOf(serviceNodesKey(slice.metadata), serviceNodesOf(slice)),
  },
];

/** All that have an address. */
export const SERVICE_ADDRESS_RECORDS: KindMapping = {
  ...listed(SERVICE_ADDRESSES_PREFIX, "/api/v1/services"),
  record: (service) => recordOf(serviceAddressesKey(service.metadata), serviceAddressesOf(service)),
};

function recordOf(key: string, value: object | undefined): ObjectRecord {
  return value === undefined ? { key } : { key, value: JSON.stringify(value) };
}

function listed(prefix: string, path: string): Omit<KindMapping, "record"> {
  return {
    prefix,
    path: () => undefined,
    collections: () => [{ path }],
    ...readOnly("it is an object of the orchestrator"),
  };
}
