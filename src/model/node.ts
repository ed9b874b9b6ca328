/** Node: a host as the network sees it. Its labels are what pools' node selectors look at. */
import * as v from "valibot";
import { addressField, interfaceAddressField, macField } from "./fields.ts";
import { defineResource, type Resource } from "./resource.ts";

const asNumber = v.union([v.pipe(v.number(), v.integer()), v.string()]);

const specSchema = v.object({
  bgp: v.exactOptional(
    v.object({
      asNumber: v.exactOptional(asNumber),
      ipv4Address: v.exactOptional(interfaceAddressField),
      ipv6Address: v.exactOptional(interfaceAddressField),
      ipv4IPIPTunnelAddr: v.exactOptional(addressField),
      routeReflectorClusterID: v.exactOptional(v.string()),
    }),
  ),
  ipv4VXLANTunnelAddr: v.exactOptional(addressField),
  vxlanTunnelMACAddr: v.exactOptional(macField),
  ipv6VXLANTunnelAddr: v.exactOptional(addressField),
  vxlanTunnelMACAddrV6: v.exactOptional(macField),
  orchRefs: v.exactOptional(
    v.array(v.object({ nodeName: v.exactOptional(v.string()), orchestrator: v.exactOptional(v.string()) })),
  ),
  wireguard: v.exactOptional(
    v.object({
      interfaceIPv4Address: v.exactOptional(addressField),
      interfaceIPv6Address: v.exactOptional(addressField),
    }),
  ),
  addresses: v.exactOptional(v.array(v.object({ address: interfaceAddressField, type: v.exactOptional(v.string()) }))),
});

export type Node = Resource<"Node", Readonly<v.InferOutput<typeof specSchema>>>;

export const node = defineResource({
  kind: "Node",
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): Node["spec"] => spec,
});
