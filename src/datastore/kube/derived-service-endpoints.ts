/** The endpoints of services, derived from EndpointSlices on every read. They cannot be written. */
import { parseKey } from "../../model/keys.ts";
import { SERVICE_ENDPOINTS_PREFIX, serviceEndpointsKey, serviceEndpointsOf } from "../../model/service-endpoints.ts";
import { type KindMapping, readOnly } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PATH = "/apis/discovery.k8s.io/v1";

export const derivedServiceEndpoints: KindMapping = {
  prefix: SERVICE_ENDPOINTS_PREFIX,
  path: pathOf,
  collections: () => [{ path: `${PATH}/endpointslices` }],
  record: (slice) => {
    const key = serviceEndpointsKey(slice.metadata);
    const endpoints = serviceEndpointsOf(slice);
    return endpoints === undefined ? { key } : { key, value: JSON.stringify(endpoints) };
  },
  ...readOnly("it is derived from an EndpointSlice"),
};

function pathOf(key: string): string | undefined {
  const parts = parseKey(key);
  if (parts?.kind !== "resource" || parts.namespace === undefined) return undefined;
  const { namespace, name } = parts;
  if (!isObjectName(namespace) || !isObjectName(name)) return undefined;
  return `${PATH}/namespaces/${namespace}/endpointslices/${name}`;
}
