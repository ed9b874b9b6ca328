/** Where packets of a simulated cluster begin and end: pods and hosts, with what the records say of them. */
import { type Address, isSameAddress, parseAddress } from "../../src/ip/address.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { PacketEnd } from "../../src/policy/judge/host-passages.ts";
import type { NetworkNamespace } from "../kernel/model.ts";
import type { LivingAttachment, World } from "./invariant.ts";
import type { Machine } from "./packets/network.ts";
import type { PolicyState } from "./policy-state.ts";

/** A namespace that sends or receives. */
export interface Station {
  readonly title: string;
  readonly machine: Machine;
  readonly namespace: NetworkNamespace;
  readonly end: PacketEnd;
  /** Of a pod; a host chooses by its routes. */
  readonly addresses: readonly Address[];
}

/** Those with a kernel. */
export function machinesIn(world: World): readonly Machine[] {
  return Array.from(world.nodes.values()).flatMap(({ name, host }) =>
    host === undefined ? [] : [{ name, root: host.root, segment: host.segment }],
  );
}

/** What is wrong if it cannot be reached, in words; `undefined` if no kernel of its node is simulated. */
export function podStation(
  world: World,
  attachment: LivingAttachment,
  { resources }: Pick<PolicyState, "resources">,
): Station | string | undefined {
  const { node, containerId, netnsPath, pod } = attachment;
  const { host } = world.nodes.get(node) ?? {};
  if (host === undefined) return undefined;
  const title = `pod ${pod.namespace}/${pod.name} on ${node}`;
  const machine = { name: node, root: host.root, segment: host.segment };
  const namespace = netnsPath === undefined ? undefined : host.namespaceAt(netnsPath);
  if (namespace === undefined) return `${title} has no network namespace`;
  const addresses = attachment.addresses.flatMap((text) => parseAddress(text) ?? []);
  const workload = resources.endpoints.find(({ spec }) => spec.containerID === containerId);
  if (workload === undefined || !hasAddresses(workload, addresses)) return `${title} has no endpoint of its addresses`;
  return { title, machine, namespace, end: { workload }, addresses };
}

function hasAddresses({ spec }: WorkloadEndpoint, addresses: readonly Address[]): boolean {
  const recorded = (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? []);
  return (
    recorded.length === addresses.length &&
    addresses.every((address) => recorded.some((own) => isSameAddress(own, address)))
  );
}
