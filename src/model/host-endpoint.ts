/** HostEndpoint: an interface of a host, or all of them, that policies apply to. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { checkEndpointPorts, hostEndpointPort } from "./endpoint-port.ts";
import { addressField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

/** Every interface of the host that is not a workload's. */
export const ALL_INTERFACES = "*";

const specSchema = v.object({
  node: v.exactOptional(v.string()),
  interfaceName: v.exactOptional(v.string()),
  expectedIPs: v.exactOptional(v.array(addressField)),
  profiles: v.exactOptional(v.array(v.string())),
  ports: v.exactOptional(v.array(hostEndpointPort)),
});

export type HostEndpointSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type HostEndpoint = Resource<"HostEndpoint", HostEndpointSpec>;

export const hostEndpoint = defineResource({
  kind: "HostEndpoint",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): HostEndpointSpec => spec,
  check: checkHostEndpoint,
});

export const INTERFACE_NAME = /^[a-zA-Z0-9_.-]{1,15}$/;

/** The rules of the CRD have the same ones. */
export const HOST_ENDPOINT_MESSAGES = {
  node: "is missing; add the name of the host's node",
  noInterface: `is missing, and expectedIPs too; add one of them, or "${ALL_INTERFACES}" for all interfaces`,
  interfaceName: `is not an interface name; use 1 to 15 letters, digits, "_", "." or "-", or "${ALL_INTERFACES}"`,
} as const;

function checkHostEndpoint({ node, interfaceName, expectedIPs = [], ports }: HostEndpointSpec): readonly Problem[] {
  const problems: Problem[] = [];
  if (!node) problems.push({ path: "spec.node", value: node, message: HOST_ENDPOINT_MESSAGES.node });
  if (interfaceName === undefined && expectedIPs.length === 0) {
    problems.push({ path: "spec.interfaceName", value: interfaceName, message: HOST_ENDPOINT_MESSAGES.noInterface });
  }
  if (interfaceName !== undefined && interfaceName !== ALL_INTERFACES && !INTERFACE_NAME.test(interfaceName)) {
    problems.push({ path: "spec.interfaceName", value: interfaceName, message: HOST_ENDPOINT_MESSAGES.interfaceName });
  }
  return [...problems, ...checkEndpointPorts(ports)];
}
