/** The second, slow evaluator: decides requests by the resources of the cluster as the admin tool prints them. */
import { parseAddress } from "../../src/ip/address.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { formatProblem } from "../../src/model/problem.ts";
import { profile } from "../../src/model/profile.ts";
import { tier } from "../../src/model/tier.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { judgeRequest } from "../support/judge-request.ts";
import { type AlpCluster, principalOf, SHOP } from "./alp-cluster.ts";
import type { RandomRequest } from "./random-policies.ts";
import { PORTS, TRUST_DOMAIN } from "./served-pod.ts";

export type SlowJudge = (request: RandomRequest) => "through" | "denied";

/** Decides about requests to the pod of this name. */
export async function slowJudgeOf(cluster: AlpCluster, pod: string): Promise<SlowJudge> {
  const read = async <Resource>(codec: Codec<Resource>): Promise<readonly Resource[]> => {
    const printed = await cluster.admin("get", codec.kind, ...(codec.namespaced ? ["-A"] : []), "-o", "json");
    const { items }: { readonly items: readonly unknown[] } = JSON.parse(printed);
    return items.map((item) => {
      const decoded = codec.decode(item);
      if (!decoded.ok) throw new Error(decoded.problems.map(formatProblem).join("; "));
      return decoded.value;
    });
  };
  const resources = {
    endpoints: await read(workloadEndpoint),
    hostEndpoints: [],
    profiles: await read(profile),
    networkPolicies: await read(networkPolicy),
    globalNetworkPolicies: await read(globalNetworkPolicy),
    containerLabels: [],
    networkSets: [],
    globalNetworkSets: [],
    tiers: await read(tier),
    serviceEndpoints: [],
  };
  const endpoint = resources.endpoints.find(({ metadata, spec }) => metadata.namespace === SHOP && spec.pod === pod);
  if (endpoint === undefined) throw new Error(`no endpoint of pod ${pod}`);
  return ({ client, identity, method, path }) => {
    const source = parseAddress(cluster.clients[client].address);
    if (source === undefined) throw new Error(`no address of ${client}`);
    const request = {
      source,
      destinationPort: identity === undefined ? PORTS.plain : PORTS.mutualTls,
      http: { method, path },
      ...(identity === undefined ? {} : { principal: principalOf(identity) }),
    };
    const { verdict } = judgeRequest(request, endpoint, { resources, trustDomain: TRUST_DOMAIN });
    return verdict === "allow" ? "through" : "denied";
  };
}

interface Codec<Resource> {
  readonly kind: string;
  readonly namespaced: boolean;
  decode(
    value: unknown,
  ):
    | { readonly ok: true; readonly value: Resource }
    | { readonly ok: false; readonly problems: readonly Parameters<typeof formatProblem>[0][] };
}
