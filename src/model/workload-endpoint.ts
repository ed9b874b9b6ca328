/** WorkloadEndpoint: one interface of one workload, its addresses and its host-side interface. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { addressBits, formatAddress, isSameAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { checkEndpointPorts, endpointPort } from "./endpoint-port.ts";
import { checkFamily } from "./family-check.ts";
import { addressField, interfaceAddressField, macField, prefixOrAddressField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";
import { workloadEndpointName } from "./workload-endpoint-name.ts";

const INTERFACE_NAME = /^[a-zA-Z0-9_.-]{1,15}$/;

const specSchema = v.object({
  orchestrator: v.exactOptional(v.string()),
  workload: v.exactOptional(v.string()),
  node: v.exactOptional(v.string()),
  containerID: v.exactOptional(v.string()),
  pod: v.exactOptional(v.string()),
  endpoint: v.exactOptional(v.string()),
  serviceAccountName: v.exactOptional(v.string()),
  /** Each is a single address: `10.0.0.5/32`. */
  ipNetworks: v.exactOptional(v.array(interfaceAddressField)),
  ipNATs: v.exactOptional(v.array(v.object({ internalIP: addressField, externalIP: addressField }))),
  ipv4Gateway: v.exactOptional(addressField),
  ipv6Gateway: v.exactOptional(addressField),
  profiles: v.exactOptional(v.array(v.string())),
  interfaceName: v.exactOptional(
    v.pipe(
      v.string(),
      v.regex(INTERFACE_NAME, 'is not a valid interface name; use 1 to 15 letters, digits, "_", "." or "-"'),
    ),
  ),
  mac: v.exactOptional(macField),
  ports: v.exactOptional(v.array(endpointPort)),
  /** Sources beside `ipNetworks`. */
  allowSpoofedSourcePrefixes: v.exactOptional(v.array(prefixOrAddressField)),
});

export type WorkloadEndpointSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type WorkloadEndpoint = Resource<"WorkloadEndpoint", WorkloadEndpointSpec>;

export const workloadEndpoint = defineResource({
  kind: "WorkloadEndpoint",
  api: PRODUCT_API,
  namespaced: true,
  spec: specSchema,
  complete: (spec): WorkloadEndpointSpec => spec,
  check: (spec, { name }) => [
    ...checkName(spec, name),
    ...checkNetworks(spec),
    ...checkNats(spec),
    ...checkFamily(spec.ipv4Gateway, 4, "spec.ipv4Gateway"),
    ...checkFamily(spec.ipv6Gateway, 6, "spec.ipv6Gateway"),
    ...checkEndpointPorts(spec.ports),
  ],
});

/** An endpoint is looked up by this name. */
function checkName(spec: WorkloadEndpointSpec, name: string): readonly Problem[] {
  const { node = "", orchestrator = "", endpoint = "" } = spec;
  const workload = { k8s: spec.pod, cni: spec.containerID }[orchestrator] ?? spec.workload ?? "";
  const made = workloadEndpointName({ node, orchestrator, workload, endpoint });
  if (!made.ok || made.name === name) return [];
  return [
    {
      path: "metadata.name",
      value: name,
      message: `does not match the identifiers of the endpoint; use "${made.name}"`,
    },
  ];
}

function checkNetworks({ ipNetworks = [] }: WorkloadEndpointSpec): readonly Problem[] {
  return ipNetworks.flatMap((text, index): Problem[] => {
    const read = parseInterfaceAddress(text);
    const bits = read && addressBits(read.address.family);
    if (!read || read.length === bits) return [];
    const message = `is a network, not an address; use "${formatAddress(read.address)}/${bits}"`;
    return [{ path: `spec.ipNetworks[${index}]`, value: text, message }];
  });
}

function checkNats({ ipNetworks = [], ipNATs = [] }: WorkloadEndpointSpec): readonly Problem[] {
  const own = ipNetworks.map((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text));
  return ipNATs.flatMap(({ internalIP }, index): Problem[] => {
    const internal = parseAddress(internalIP);
    if (internal && own.some((address) => address && isSameAddress(address, internal))) return [];
    const message = `is not an address of the endpoint; use one of ${ipNetworks.join(", ") || "its ipNetworks"}`;
    return [{ path: `spec.ipNATs[${index}].internalIP`, value: internalIP, message }];
  });
}
