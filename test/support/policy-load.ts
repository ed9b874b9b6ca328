/**
 * A cluster of any size for measurements of policy: endpoints on one node and on others, and policies, each of which
 * selects the endpoints of one application and allows those of another. Numbered, so that all of it can be computed.
 */
import { identity } from "../../src/identity.ts";
import { type NetworkPolicy, networkPolicy } from "../../src/model/network-policy.ts";
import { type Profile, profile } from "../../src/model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { NO_RESOURCES } from "./policy-changes.ts";

interface LoadSize {
  readonly locals: number;
  readonly remotes: number;
  readonly policies: number;
}

export const LOAD_NODE = "here";
const NAMESPACES = 100;
/** Endpoints of the application with number N + PEER_DISTANCE may connect to those of number N, in the same namespace. */
const PEER_DISTANCE = 100;
export const LOAD_PORT = 80;

/** The number of policies must be a multiple of the number of namespaces. */
export function policyLoad({ locals, remotes, policies }: LoadSize): PolicyResources {
  const list = <Value>(length: number, make: (index: number) => Value) =>
    Array.from({ length }, (_, index) => make(index));
  return {
    ...NO_RESOURCES,
    profiles: list(NAMESPACES, namespaceProfile),
    endpoints: [
      ...list(locals, (index) => localEndpoint(index, index % policies)),
      ...list(remotes, (index) => remoteEndpoint(index, index % policies)),
    ],
    networkPolicies: list(policies, (index) => policyOf(index, { policies })),
  };
}

export function localEndpoint(index: number, application: number): WorkloadEndpoint {
  return endpoint(LOAD_NODE, index, application);
}

export function remoteEndpoint(index: number, application: number): WorkloadEndpoint {
  return endpoint("other", index, application);
}

export function policyOf(
  index: number,
  { policies, port = LOAD_PORT }: { readonly policies: number; readonly port?: number },
): NetworkPolicy {
  const source = { selector: `app == 'app${peerOf(index, policies)}'` };
  return networkPolicy.make(
    { name: `policy${index}`, namespace: namespaceOf(index) },
    {
      tier: "default",
      order: 1000,
      selector: `app == 'app${index}'`,
      types: ["Ingress"],
      ingress: [{ action: "Allow", protocol: "TCP", source, destination: { ports: [port] } }],
    },
  );
}

/** The application that the policy of another allows. */
export function peerOf(application: number, policies: number): number {
  return (application + PEER_DISTANCE) % policies;
}

function namespaceOf(application: number): string {
  return `namespace${application % NAMESPACES}`;
}

/** The host's side of the veth of a local endpoint. */
export function interfaceOf(index: number): string {
  return `${identity.interfacePrefix}${index}`;
}

export function addressOf(node: string, index: number): string {
  const third = (index >> 8) & 255;
  return `10.${node === LOAD_NODE ? 64 : 65}.${third}.${index & 255}`;
}

function endpoint(node: string, index: number, application: number): WorkloadEndpoint {
  const pod = `pod${index}`;
  const namespace = namespaceOf(application);
  const prefix = identity.labelPrefix;
  return workloadEndpoint.make(
    {
      name: `${node}-k8s-${pod}-eth0`,
      namespace,
      labels: {
        app: `app${application}`,
        [`${prefix}namespace`]: namespace,
        [`${prefix}orchestrator`]: "k8s",
      },
    },
    {
      node,
      orchestrator: "k8s",
      endpoint: "eth0",
      pod,
      containerID: `container${index}`,
      ipNetworks: [`${addressOf(node, index)}/32`],
      profiles: [`kns.${namespace}`],
      interfaceName: interfaceOf(index),
    },
  );
}

function namespaceProfile(index: number): Profile {
  const name = namespaceOf(index);
  return profile.make(
    { name: `kns.${name}` },
    {
      ingress: [{ action: "Allow" }],
      egress: [{ action: "Allow" }],
      labelsToApply: { [`pcns.${identity.labelPrefix}name`]: name },
    },
  );
}
