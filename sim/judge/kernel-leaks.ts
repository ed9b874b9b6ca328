/**
 * Nothing in the kernels is left of what is gone: at rest, each interface of a pod, each route, neighbour and forwarding
 * entry, each element of a set, and each status file belongs to something that exists.
 */

import { senderSet } from "../../src/firewall/tunnel-table.ts";
import { identity } from "../../src/identity.ts";
import { type Address, addressFromBytes, formatAddress, isSameAddress, parseAddress } from "../../src/ip/address.ts";
import { formatMac } from "../../src/ip/mac.ts";
import { formatPrefix, isSamePrefix, parsePrefixOrAddress, prefixContains, singlePrefix } from "../../src/ip/prefix.ts";
import { interfaceValue } from "../../src/linux/nftables/value.ts";
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import { isStatusOf } from "../../src/model/endpoint-status.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { FROM_WORKLOADS, TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";
import { interfacesIn } from "./endpoint-status.ts";
import type { Invariant, World, WorldHost, WorldNode } from "./invariant.ts";
import { type IpamState, ipamReader } from "./ipam-state.ts";
import { type PolicyState, policyStateOf } from "./policy-state.ts";

export function noLeftoverInKernel(read = ipamReader()): Invariant {
  return {
    name: "no leftover in a kernel",
    when: "at rest",
    check(world) {
      const truth = { ipam: read(world.records), state: policyStateOf(world.records), world };
      return Array.from(world.nodes.values()).flatMap((node) => {
        const { host, name } = node;
        if (host === undefined || !node.isRegistered) return [];
        return [
          ...leftLinks(node, host),
          ...leftRoutes(host, truth),
          ...leftPeers(host, truth.state),
          ...leftElements(host, truth.state),
          ...leftStatus(node, host),
        ].map((what) => `${name}: ${what}`);
      });
    },
  };
}

interface Truth {
  readonly ipam: IpamState;
  readonly state: PolicyState;
  readonly world: World;
}

function attachedIds({ attachments }: WorldNode): ReadonlySet<string> {
  return new Set(
    Array.from(attachments.values()).flatMap(({ state, containerId }) => (state === "attached" ? [containerId] : [])),
  );
}

function leftLinks(node: WorldNode, { root }: WorldHost): readonly string[] {
  const attached = attachedIds(node);
  return [...root.links.values()]
    .filter(({ name, kind }) => kind === "veth" && name.startsWith(identity.interfacePrefix))
    .filter(({ alias = "" }) => !attached.has(alias.split("/")[1] ?? ""))
    .map(({ name, alias }) => `interface "${name}" (${alias}) is of no container`);
}

/** Routes lead to blocks, to addresses that are in use, and to tunnels of nodes. */
function leftRoutes({ root }: WorldHost, { ipam, state }: Truth): readonly string[] {
  const tunnels = [...state.routing.nodes.values()].flatMap(({ vxlan, ipip }) => [
    ...[vxlan[4], vxlan[6]].flatMap((end) => end?.address ?? []),
    ...(ipip === undefined ? [] : [ipip]),
  ]);
  return root.routes
    .filter(({ protocol }) => protocol === ROUTE_PROTOCOL.own)
    .filter(
      ({ destination }) =>
        !ipam.blocks.some(({ cidr }) => isSamePrefix(cidr, destination)) &&
        !ipam.holdings.has(formatAddress(destination.network)) &&
        !tunnels.some((address) => isSamePrefix(singlePrefix(address), destination)),
    )
    .map(({ destination, kind }) => `the ${kind} route to ${formatPrefix(destination)} leads to nothing`);
}

/** The other ends of VXLAN tunnels. */
function leftPeers({ root }: WorldHost, { routing }: PolicyState): readonly string[] {
  const devices = new Map(Array.from(root.links.values()).flatMap((link) => (link.vxlan ? [[link.index, link]] : [])));
  const nodes = [...routing.nodes.values()];
  const ends = nodes.flatMap(({ vxlan }) => [vxlan[4], vxlan[6]].flatMap((end) => end ?? []));
  const neighbours = root.neighbours
    .filter(({ linkIndex, address }) => devices.has(linkIndex) && address.value >> 112n !== LINK_LOCAL)
    .filter(
      ({ address, mac }) => !ends.some((end) => isSameAddress(end.address, address) && end.mac === formatMac(mac)),
    )
    .map(({ address }) => `the neighbour ${formatAddress(address)} of a tunnel is no node`);
  const entries = root.forwarding
    .filter(({ linkIndex }) => devices.has(linkIndex))
    .filter(
      ({ remote, mac }) =>
        !nodes.some(
          ({ addresses, vxlan }) =>
            [addresses[4], addresses[6]].some((own) => own !== undefined && isSameAddress(own.address, remote)) &&
            [vxlan[4], vxlan[6]].some((end) => end?.mac === formatMac(mac)),
        ),
    )
    .map(({ remote, mac }) => `the forwarding entry ${formatMac(mac)} to ${formatAddress(remote)} leads to no node`);
  return [...neighbours, ...entries];
}

const LINK_LOCAL = 0xfe80n;
/** Sets with the addresses that a selector selects. */
const SELECTED = /^s_.*_[46]$/;

function leftElements({ root }: WorldHost, { resources, routing }: PolicyState): readonly string[] {
  const netfilter = root.nftables;
  const names = new Set(Array.from(root.links.values(), ({ name }) => interfaceValue(name).toHex()));
  const interfaces = [FROM_WORKLOADS, TO_WORKLOADS].flatMap((map) =>
    [...interfacesIn(netfilter, map)]
      .filter((key) => !names.has(key))
      .map((key) => `the map "${map}" has an interface that does not exist (${nameOf(key)})`),
  );
  const policy = netfilter.tables.get(`inet ${identity.policyTable}`);
  const members = [...(policy?.sets ?? [])]
    .filter(([name]) => SELECTED.test(name))
    .flatMap(([name, { elements }]) =>
      Array.from(elements.values()).flatMap(({ key }) => {
        const address = addressFromBytes(key);
        if (address === undefined || isMember(address, resources)) return [];
        return [`the set "${name}" has ${formatAddress(address)}, which no endpoint has`];
      }),
    );
  const tunnel = netfilter.tables.get(`inet ${identity.tunnelTable}`);
  const nodes = [...routing.nodes.values()].flatMap(({ addresses }) => [addresses[4], addresses[6]]);
  const senders = ([4, 6] as const).flatMap((family) =>
    Array.from(tunnel?.sets.get(senderSet(family))?.elements.values() ?? []).flatMap(({ key }) => {
      const address = addressFromBytes(key);
      if (address === undefined || nodes.some((own) => own && isSameAddress(own.address, address))) return [];
      return [`tunnelled packets of ${formatAddress(address)} are accepted, which is no node`];
    }),
  );
  return [...interfaces, ...members, ...senders];
}

function nameOf(key: string): string {
  return new TextDecoder().decode(Uint8Array.fromHex(key)).replace(/\0+$/, "");
}

function isMember(address: Address, resources: PolicyResources): boolean {
  const { endpoints, hostEndpoints, networkSets, globalNetworkSets } = resources;
  return (
    endpoints.some(({ spec }) => (spec.ipNetworks ?? []).some((text) => isWithin(text, address))) ||
    hostEndpoints.some(({ spec }) => (spec.expectedIPs ?? []).some((text) => isOne(text, address))) ||
    [...networkSets, ...globalNetworkSets].some(({ spec }) => (spec.nets ?? []).some((text) => isWithin(text, address)))
  );
}

function isWithin(text: string, address: Address): boolean {
  const prefix = parsePrefixOrAddress(text);
  return prefix !== undefined && prefixContains(prefix, address);
}

function isOne(text: string, address: Address): boolean {
  const parsed = parseAddress(text);
  return parsed !== undefined && isSameAddress(parsed, address);
}

function leftStatus(node: WorldNode, { statusFiles }: WorldHost): readonly string[] {
  const attached = [...attachedIds(node)];
  return [...statusFiles]
    .filter(([, text]) => !attached.some((containerId) => isStatusOf(text, containerId)))
    .map(([file]) => `the status file "${file}" is of no container`);
}
