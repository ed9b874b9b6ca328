/** Node: a host of the network. The node selectors of pools match its labels. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { parseAddress } from "../ip/address.ts";
import { NOT_AN_AS_NUMBER, parseAsNumber } from "./as-number.ts";
import { checkFamily } from "./family-check.ts";
import { addressField, interfaceAddressField, macField, prefixField } from "./fields.ts";
import type { Problem } from "./problem.ts";
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
  podCIDRs: v.exactOptional(v.array(prefixField)),
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
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): Node["spec"] => spec,
  check: (spec) => [...checkAsNumber(spec), ...checkClusterId(spec), ...checkFamilies(spec)],
});

function checkAsNumber({ bgp }: Node["spec"]): readonly Problem[] {
  const given = bgp?.asNumber;
  if (given === undefined || parseAsNumber(given) !== undefined) return [];
  return [{ path: "spec.bgp.asNumber", value: given, message: NOT_AN_AS_NUMBER }];
}

function checkClusterId({ bgp }: Node["spec"]): readonly Problem[] {
  const given = bgp?.routeReflectorClusterID;
  if (given === undefined || given === "" || isClusterId(given)) return [];
  const message = 'is not a cluster ID of BGP; use one in the form of an IPv4 address, like "244.0.0.1"';
  return [{ path: "spec.bgp.routeReflectorClusterID", value: given, message }];
}

/** BGP writes it as an IPv4 address, whatever it means. */
export function isClusterId(text: string): boolean {
  return parseAddress(text)?.family === 4;
}

function checkFamilies({ bgp, wireguard, ...spec }: Node["spec"]): readonly Problem[] {
  return [
    ...checkFamily(bgp?.ipv4Address, 4, "spec.bgp.ipv4Address"),
    ...checkFamily(bgp?.ipv6Address, 6, "spec.bgp.ipv6Address"),
    ...checkFamily(bgp?.ipv4IPIPTunnelAddr, 4, "spec.bgp.ipv4IPIPTunnelAddr"),
    ...checkFamily(spec.ipv4VXLANTunnelAddr, 4, "spec.ipv4VXLANTunnelAddr"),
    ...checkFamily(spec.ipv6VXLANTunnelAddr, 6, "spec.ipv6VXLANTunnelAddr"),
    ...checkFamily(wireguard?.interfaceIPv4Address, 4, "spec.wireguard.interfaceIPv4Address"),
    ...checkFamily(wireguard?.interfaceIPv6Address, 6, "spec.wireguard.interfaceIPv6Address"),
  ];
}
