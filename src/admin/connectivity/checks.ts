/** Which connections a connectivity test tries, from what it found in the cluster. Pure. */

import { type Probe, probeKey } from "./probe.ts";
import type { PolicyPhase } from "./test-objects.ts";
import { hostServerPort, OTHER_PORT, podName, SERVER_PORT } from "./test-objects.ts";

export type Phase = "connections" | PolicyPhase;

export interface Check {
  readonly title: string;
  /** Names of nodes; `to` may also be something that has no node. */
  readonly from: string;
  readonly to: string;
  readonly family: Family | undefined;
  readonly phase: Phase;
  /** The pod that tries it. */
  readonly client: string;
  /** The pod that must run to answer; absent: it is not one of this test. */
  readonly server?: string;
  readonly probe: Probe;
  readonly expected: "open" | "closed";
  /** Whether the server must see an address of the client: NetworkPolicy depends on it. */
  readonly keepsSource: boolean;
}

export type Family = "IPv4" | "IPv6";

/** A node of the test, with the addresses that matter. */
export interface TestNode {
  readonly name: string;
  readonly number: number;
  readonly addresses: readonly string[];
}

export interface TestSite {
  readonly nodes: readonly TestNode[];
  /** Addresses of the pods that run, by name. */
  readonly podAddresses: ReadonlyMap<string, readonly string[]>;
  /** Cluster IPs by the name of the Service. */
  readonly serviceAddresses: ReadonlyMap<string, readonly string[]>;
  /** Of the Service `kubernetes`. */
  readonly apiServer: { readonly addresses: readonly string[]; readonly port: number };
  readonly hasDns: boolean;
  readonly hostPort: number;
}

function familyOf(address: string): Family {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/** The clients do not run yet: they get addresses of the families that the servers have. */
export function checksOf(site: TestSite): readonly Check[] {
  return site.nodes.flatMap((node) => [...checksFromPod(site, node), ...checksFromHost(site, node)]);
}

/** What a pod has to try: each probe once. */
export function probesOf(checks: readonly Check[], client: string): readonly Probe[] {
  const own = checks.filter((check) => check.client === client);
  return [...new Map(own.map(({ probe }) => [probeKey(probe), probe])).values()];
}

function checksFromPod(site: TestSite, node: TestNode): readonly Check[] {
  const { apiServer, nodes, podAddresses, serviceAddresses, hasDns, hostPort } = site;
  const connects = connectsFrom(node, familiesOfPods(site));
  const servers = nodes.map((each) => ({ ...each, server: podName({ role: "server", number: each.number }) }));
  const hosts = nodes.map((each) => ({ ...each, server: podName({ role: "host", number: each.number }) }));
  const hostPorts = nodes.map((each) => ({ ...each, server: podName({ role: "host-port", number: each.number }) }));
  const api = { name: "API server", server: undefined };
  return [
    ...servers.flatMap((to) => keepSource(connects("pod to pod", to, podAddresses.get(to.server), SERVER_PORT))),
    ...servers.flatMap((to) => connects("pod to Service", to, serviceAddresses.get(to.server), SERVER_PORT)),
    ...hosts.flatMap((to) => connects("pod to host", to, to.addresses, hostServerPort({ hostPort }))),
    ...hostPorts.flatMap((to) => connects("pod to host port", to, to.addresses, hostPort)),
    ...connects("pod to API server", api, apiServer.addresses, apiServer.port).map(withoutRequest),
    ...(hasDns ? [dnsCheck(node)] : []),
    ...servers.flatMap((to) => policyChecks(connects, to, podAddresses.get(to.server))),
  ];
}

type Connects = (
  title: string,
  to: { readonly name: string; readonly server: string | undefined },
  addresses: readonly string[] | undefined,
  port: number,
) => readonly Check[];

function connectsFrom(node: TestNode, families: ReadonlySet<Family>): Connects {
  const base = baseFrom(node);
  return (title, { name, server }, addresses = [], port) =>
    addresses
      .filter((host) => families.has(familyOf(host)))
      .map((host) => ({
        ...base,
        title,
        to: name,
        family: familyOf(host),
        probe: { kind: "echo", host, port },
        ...(server === undefined ? {} : { server }),
      }));
}

function baseFrom({ name, number }: TestNode) {
  const client = podName({ role: "client", number });
  return { from: name, client, phase: "connections", expected: "open", keepsSource: false } as const;
}

function dnsCheck(node: TestNode): Check {
  const probe = { kind: "resolve", host: "kubernetes.default.svc" } as const;
  return { ...baseFrom(node), title: "pod to DNS", to: "cluster DNS", family: undefined, probe };
}

function withoutRequest(check: Check): Check {
  return check.probe.kind === "echo" ? { ...check, probe: { ...check.probe, kind: "connect" } } : check;
}

function keepSource(checks: readonly Check[]): readonly Check[] {
  return checks.map((check) => ({ ...check, keepsSource: true }));
}

const POLICY_CHECKS = [
  { title: "policy denies ingress", port: SERVER_PORT, phase: "deny ingress", expected: "closed" },
  { title: "policy allows a port", port: SERVER_PORT, phase: "allow ingress", expected: "open" },
  { title: "policy denies other ports", port: OTHER_PORT, phase: "allow ingress", expected: "closed" },
  { title: "policy denies egress", port: SERVER_PORT, phase: "deny egress", expected: "closed" },
] as const;

function policyChecks(
  connects: Connects,
  to: { readonly name: string; readonly server: string },
  addresses: readonly string[] | undefined,
): readonly Check[] {
  return POLICY_CHECKS.flatMap(({ title, port, phase, expected }) =>
    connects(title, to, addresses, port).map((check) => ({ ...check, phase, expected })),
  );
}

function checksFromHost({ nodes, podAddresses }: TestSite, node: TestNode): readonly Check[] {
  const client = podName({ role: "host", number: node.number });
  const servers = nodes.map((each) => ({ ...each, server: podName({ role: "server", number: each.number }) }));
  return servers.flatMap(({ name, server }) =>
    (podAddresses.get(server) ?? [])
      .filter((host) => node.addresses.some((own) => familyOf(own) === familyOf(host)))
      .map((host) => ({
        title: "host to pod",
        from: node.name,
        to: name,
        family: familyOf(host),
        phase: "connections",
        client,
        server,
        probe: { kind: "echo", host, port: SERVER_PORT },
        expected: "open",
        keepsSource: false,
      })),
  );
}

function familiesOfPods({ podAddresses }: TestSite): ReadonlySet<Family> {
  const servers = [...podAddresses].filter(([name]) => name.startsWith("server-"));
  return new Set(servers.flatMap(([, addresses]) => addresses.map(familyOf)));
}
