/**
 * Automatic host endpoints: one for all interfaces of each node, which follows its labels and addresses. If they are
 * disabled, those that exist are removed. Host endpoints that are not automatic are left alone.
 */
import { identity } from "../identity.ts";
import { automaticName, CREATED_BY_LABEL, isAutomatic, nodeOfAutomaticName } from "../model/automatic-host-endpoint.ts";
import { ALL_INTERFACES, type HostEndpoint } from "../model/host-endpoint.ts";
import { nameInKey, resourceKey } from "../model/keys.ts";
import { HOST_ENDPOINT } from "../model/kinds.ts";
import type { Node } from "../model/node.ts";
import { orchestratorName } from "../model/node-orchestrator-name.ts";
import { DEFAULT_ALLOW_PROFILE } from "../model/profile.ts";
import type { Controller, Proposal, ProposedRemovals } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";
import { NodeReferences } from "./node-references.ts";

/** Its keys are those of host endpoints. */
export function hostEndpointController(autoCreate: "Enabled" | "Disabled"): Controller {
  const references = new NodeReferences();
  return {
    name: "host endpoints",
    follows: { orchestrator: ["nodes"], stored: ["nodes", "hostEndpoints"] },
    keysOf: (update: FactsUpdate) => [
      ...Array.from(references.recordsIn(update), endpointKeyOf),
      ...(update.stored.hostEndpoints ?? []).map(({ key }) => key).filter(isAutomaticName),
    ],
    allKeys: ({ stored }: Facts) =>
      new Set([
        ...Array.from(stored.nodes.keys(), endpointKeyOf),
        ...[...stored.hostEndpoints.keys()].filter(isAutomaticName),
      ]),
    // If they are disabled, all of them go, as the setting says.
    ...(autoCreate === "Enabled" ? { removals: withoutNode } : {}),
    decide: (key, facts) => decide(key, facts, autoCreate === "Enabled"),
  };
}

function withoutNode({ stored }: Facts): ProposedRemovals {
  const automatic = Array.from(stored.hostEndpoints).filter(([key, each]) => isAutomaticName(key) && isAutomatic(each));
  const keys = automatic.map(([key]) => key);
  return { keys: keys.filter((key) => stored.nodes.get(nodeKeyOf(key)) === undefined), total: keys.length };
}

function decide(key: string, { orchestrator, stored }: Facts, isEnabled: boolean): Proposal | undefined {
  const held = stored.hostEndpoints.held(key);
  // A user's, whatever its name is.
  if (held?.kind === "readable" && !isAutomatic(held.value)) return undefined;
  if (held?.kind === "unreadable") return undefined;
  const node = isEnabled ? stored.nodes.get(nodeKeyOf(key)) : undefined;
  const name = nameInKey(key);
  if (node === undefined) {
    if (held === undefined) return undefined;
    const reason = isEnabled ? "its node is gone" : "automatic host endpoints are disabled";
    return { changes: [{ kind: "delete", key, revision: held.revision }], reason: `deleted ${name}: ${reason}` };
  }
  const reported = orchestrator.nodes.get(resourceKey("nodes", { name: orchestratorName(node) }));
  const wanted = endpointOf(node, reported);
  const { codec } = HOST_ENDPOINT;
  if (held === undefined) {
    return { changes: [{ kind: "create", key, value: codec.write(wanted) }], reason: `created ${name}` };
  }
  const after = {
    ...held.value,
    metadata: { ...held.value.metadata, labels: wanted.metadata.labels ?? {} },
    spec: wanted.spec,
  };
  if (Bun.deepEquals(after, held.value)) return undefined;
  return {
    changes: [{ kind: "update", key, value: codec.write(after), revision: held.revision }],
    reason: `updated ${name}`,
  };
}

/** `reported`: the node of the orchestrator, with the addresses that its kubelet reported. */
function endpointOf({ metadata, spec }: Node, reported: Node | undefined): HostEndpoint {
  return HOST_ENDPOINT.codec.make(
    {
      name: automaticName(metadata.name),
      labels: { ...metadata.labels, [CREATED_BY_LABEL]: identity.controllers },
    },
    {
      node: metadata.name,
      interfaceName: ALL_INTERFACES,
      expectedIPs: [...new Set([...addressesOf(spec), ...(reported === undefined ? [] : addressesOf(reported.spec))])],
      profiles: [DEFAULT_ALLOW_PROFILE],
    },
  );
}

/** Those of BGP and tunnels first. */
function addressesOf({ bgp = {}, wireguard = {}, addresses = [], ...spec }: Node["spec"]): string[] {
  const listed = [
    bgp.ipv4Address,
    bgp.ipv6Address,
    bgp.ipv4IPIPTunnelAddr,
    spec.ipv4VXLANTunnelAddr,
    spec.ipv6VXLANTunnelAddr,
    wireguard.interfaceIPv4Address,
    wireguard.interfaceIPv6Address,
    ...addresses.filter(({ type }) => type === "InternalIP").map(({ address }) => address),
  ];
  return listed.flatMap((text) => text?.split("/")[0] ?? []);
}

function isAutomaticName(key: string): boolean {
  return nodeOfAutomaticName(nameInKey(key)) !== undefined;
}

function endpointKeyOf(nodeKey: string): string {
  return resourceKey("hostendpoints", { name: automaticName(nameInKey(nodeKey)) });
}

function nodeKeyOf(endpointKey: string): string {
  return resourceKey("nodes", { name: nodeOfAutomaticName(nameInKey(endpointKey)) ?? "" });
}
