/** What a sidecar must decide about a request to its pod: the second, slow evaluator. Pure. */

import type { IncomingRequest } from "../../src/alp/judge/request-judge.ts";
import { type Address, parseAddress, unmapAddress } from "../../src/ip/address.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { TCP } from "../../src/model/protocols.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { judge, type Reason } from "../../src/policy/judge/judge.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";

export interface RequestContext {
  readonly resources: PolicyResources;
  readonly trustDomain?: string;
}

export interface RequestJudgement {
  readonly verdict: "allow" | "deny";
  readonly reason:
    | Reason
    /** The pod has no address of the family of the client. */
    | { readonly kind: "no address" };
}

export function judgeRequest(
  request: IncomingRequest,
  endpoint: WorkloadEndpoint,
  { resources, trustDomain }: RequestContext,
): RequestJudgement {
  const source = unmapAddress(request.source);
  const { principal, http, sourcePort, destinationPort } = request;
  const destination = addressesOf(endpoint).find(({ family }) => family === source.family);
  if (destination === undefined) return { verdict: "deny", reason: { kind: "no address" } };
  const packet: Packet = {
    source,
    destination,
    protocol: TCP,
    ...(sourcePort === undefined ? {} : { sourcePort }),
    destinationPort,
    request: {
      ...(principal === undefined ? {} : { principal }),
      ...(trustDomain === undefined ? {} : { trustDomain }),
      ...(http === undefined ? {} : { http }),
    },
  };
  const { verdict, reason } = judge(packet, endpoint, "ingress", resources);
  return { verdict, reason };
}

function addressesOf({ spec }: WorkloadEndpoint): readonly Address[] {
  return (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}
