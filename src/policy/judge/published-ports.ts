/**
 * Published ports of containers, as users write them in rules: a packet to the port of the host reaches the rules with the
 * port of the container. Pure.
 */
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import { isNamedPort, type PolicyRule } from "../../model/policy-rule.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { endpointsOfPolicies } from "./judge.ts";
import type { AnyPolicy, PolicyResources } from "./resources.ts";

export interface PublishedPort {
  readonly protocol: number;
  readonly hostPort: number;
  /** Of the container. */
  readonly port: number;
}

/** As the plugin of a host recorded it. */
export interface RecordedPort extends PublishedPort {
  readonly address: Address;
}

/** Recorded ones, and those that its own record has. */
export function publishedBy(
  { spec: { ipNetworks = [], ports = [] } }: WorkloadEndpoint,
  recorded: readonly RecordedPort[],
): readonly PublishedPort[] {
  const own = ipNetworks.flatMap((text) => parseAddress(text.split("/")[0] ?? "") ?? []);
  return [
    ...recorded.filter(({ address }) => own.some((each) => isSameAddress(each, address))),
    ...ports.flatMap(({ protocol: name, hostPort = 0, port }) => {
      const protocol = protocolNumber(name);
      return hostPort === 0 || protocol === undefined ? [] : [{ protocol, hostPort, port }];
    }),
  ];
}

/** The one whose host's port was meant if this port is given for the container itself, which is not known to serve it. */
export function publishedAt(
  { protocol, port }: { readonly protocol: number; readonly port: number | undefined },
  published: readonly PublishedPort[],
): PublishedPort | undefined {
  const own = published.filter((each) => each.protocol === protocol);
  if (own.some((each) => each.port === port)) return undefined;
  return own.find(({ hostPort }) => hostPort === port);
}

export interface HostPortInRule extends PublishedPort {
  readonly endpoint: WorkloadEndpoint;
}

/** Ports of hosts in rules about packets to the containers that the policies select, without the port that these packets have. */
export function hostPortsInRules(
  policies: readonly AnyPolicy[],
  resources: PolicyResources,
  recorded: readonly RecordedPort[],
): readonly HostPortInRule[] {
  const naming = policies.filter(({ spec }) =>
    (spec.ingress ?? []).some(({ destination }) => destination?.ports?.length),
  );
  if (naming.length === 0) return [];
  const selectedBy = endpointsOfPolicies(resources);
  return naming.flatMap((policy) =>
    selectedBy(policy).flatMap((endpoint) => {
      if (endpoint.kind !== "WorkloadEndpoint") return [];
      const published = publishedBy(endpoint, recorded);
      return published
        .filter(({ protocol, hostPort }) => publishedAt({ protocol, port: hostPort }, published) !== undefined)
        .filter((each) => (policy.spec.ingress ?? []).some((rule) => namesHostPort(rule, each)))
        .map((each) => ({ ...each, endpoint }));
    }),
  );
}

function namesHostPort({ protocol: wanted, destination }: PolicyRule, { protocol, hostPort, port }: PublishedPort) {
  const ports = destination?.ports ?? [];
  if (wanted !== undefined && protocolNumber(wanted) !== protocol) return false;
  return !ports.some(isNamedPort) && includes(ports, hostPort) && !includes(ports, port);
}

function includes(ports: readonly (number | string)[], port: number): boolean {
  return ports.some((each) => {
    const [first = 0, last = first] = String(each).split(":").map(Number);
    return first <= port && port <= last;
  });
}
