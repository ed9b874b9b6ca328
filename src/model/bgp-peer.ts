/** BGPPeer: sessions of nodes with a router, or with other nodes. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { asNumberField } from "./as-number.ts";
import {
  checkPassword,
  checkRefused,
  passwordField,
  peerAddressField,
  type RefusedFields,
  restartTimeField,
} from "./bgp-fields.ts";
import { selectorField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

const count = (largest: number) => {
  const message = `is out of range; use 0 to ${largest}`;
  return v.pipe(v.number(), v.integer(message), v.minValue(0, message), v.maxValue(largest, message));
};

const specSchema = v.object({
  node: v.exactOptional(v.string()),
  nodeSelector: v.exactOptional(selectorField),
  peerIP: v.exactOptional(peerAddressField),
  asNumber: v.exactOptional(asNumberField),
  localASNumber: v.exactOptional(asNumberField),
  peerSelector: v.exactOptional(selectorField),
  reversePeering: v.exactOptional(v.picklist(["Auto", "Manual"])),
  nextHopMode: v.exactOptional(v.picklist(["Auto", "Self", "Keep"])),
  keepOriginalNextHop: v.exactOptional(v.boolean()),
  password: v.exactOptional(passwordField),
  sourceAddress: v.exactOptional(v.picklist(["UseNodeIP", "None"])),
  maxRestartTime: v.exactOptional(restartTimeField),
  numAllowedLocalASNumbers: v.exactOptional(count(255)),
  ttlSecurity: v.exactOptional(count(255)),
  filters: v.exactOptional(v.array(v.string())),
  localWorkloadSelector: v.exactOptional(v.string()),
  reachableBy: v.exactOptional(v.string()),
});

export type BGPPeerSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type BGPPeer = Resource<"BGPPeer", BGPPeerSpec>;

export const REFUSED_PEER_FIELDS: RefusedFields = {
  localWorkloadSelector: "is not supported: pods are not BGP peers; remove it, and use peerIP or peerSelector",
  reachableBy: "is not supported; remove it, and add a route to the peer to the hosts",
};

/** The CRD has rules with the same messages. */
export const PEER_MESSAGES = {
  nodeSelector: "cannot be combined with node; remove one of the two",
  noPeer: "is missing, and peerSelector too; add the address of a router, or a selector of nodes",
  peerSelector: "cannot be combined with peerIP; remove one of the two",
  noAsNumber: "is missing; add the AS number of the peer",
  asNumber: "cannot be combined with peerSelector: nodes have their own AS number; remove it",
} as const;

export const bgpPeer = defineResource({
  kind: "BGPPeer",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: withoutEmptyTexts,
  check: (spec) => [
    ...checkRefused(spec, REFUSED_PEER_FIELDS),
    ...checkNodes(spec),
    ...checkPeer(spec),
    ...checkPassword(spec.password, "spec.password"),
  ],
});

/** An empty text means the same as an absent one, as in every Go program that writes these objects. */
function withoutEmptyTexts(spec: BGPPeerSpec): BGPPeerSpec {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== "")) as BGPPeerSpec;
}

function checkNodes({ node, nodeSelector }: BGPPeerSpec): readonly Problem[] {
  if (node === undefined || nodeSelector === undefined) return [];
  return [{ path: "spec.nodeSelector", value: nodeSelector, message: PEER_MESSAGES.nodeSelector }];
}

function checkPeer(spec: BGPPeerSpec): readonly Problem[] {
  const { peerIP, peerSelector, asNumber, localWorkloadSelector } = spec;
  const problem = (field: keyof BGPPeerSpec, message: string): Problem => ({
    path: `spec.${field}`,
    value: spec[field],
    message,
  });
  if (peerIP === undefined && peerSelector === undefined) {
    return localWorkloadSelector === undefined ? [problem("peerIP", PEER_MESSAGES.noPeer)] : [];
  }
  return [
    ...(peerIP !== undefined && peerSelector !== undefined
      ? [problem("peerSelector", PEER_MESSAGES.peerSelector)]
      : []),
    ...(peerSelector === undefined && asNumber === undefined ? [problem("asNumber", PEER_MESSAGES.noAsNumber)] : []),
    ...(peerSelector !== undefined && asNumber !== undefined ? [problem("asNumber", PEER_MESSAGES.asNumber)] : []),
  ];
}
