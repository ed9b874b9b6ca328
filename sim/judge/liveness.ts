/**
 * Everything that is wanted comes about: at rest every pod of a node that runs is attached, once, unless no address is
 * left for it, and every node has a record with all that its pools need.
 */

import type { Family } from "../../src/ip/address.ts";
import { parseAddress } from "../../src/ip/address.ts";
import { blockSize } from "../../src/ip/block.ts";
import { prefixContains } from "../../src/ip/prefix.ts";
import { POOL } from "../../src/model/kinds.ts";
import { readStoredPool } from "../../src/model/stored-resources.ts";
import type { Invariant, World, WorldPod } from "./invariant.ts";
import { type IpamState, ipamReader } from "./ipam-state.ts";
import { type PolicyState, policyStateOf } from "./policy-state.ts";

export function everythingComesAbout(read = ipamReader()): Invariant {
  return {
    name: "everything comes about",
    when: "at rest",
    check(world) {
      const ipam = read(world.records);
      return [...podsWithoutAttachment(world, ipam), ...incompleteNodes(world, ipam)];
    },
  };
}

function podsWithoutAttachment(world: World, ipam: IpamState): readonly string[] {
  return Array.from(world.pods.values()).flatMap((pod) => {
    const node = world.nodes.get(pod.node);
    if (node === undefined || !node.isRegistered || pod.isEnding || pod.excuse !== undefined) return [];
    const own = [...node.attachments.values()].filter((each) => each.pod.uid === pod.uid && each.state === "attached");
    if (own.length === 1) return [];
    if (own.length === 0 && isExhausted(world, ipam)) return [];
    return [`pod ${pod.namespace}/${pod.name} on ${pod.node} has ${own.length} attachments${because(pod)}`];
  });
}

function because({ failure }: WorldPod): string {
  return failure === undefined ? "" : `: ${failure}`;
}

/** Whether some family of enabled pools has no free address. */
function isExhausted({ records }: World, { holdings }: IpamState): boolean {
  const pools = records.under(POOL.prefix()).map(({ key, value }) => readStoredPool(value, key));
  const held = Array.from(holdings.keys(), (text) => parseAddress(text));
  return ([4, 6] as const).some((family: Family) => {
    const enabled = pools.filter(({ cidr, disabled }) => !disabled && cidr.network.family === family);
    if (enabled.length === 0) return family === 4 && pools.some(({ cidr }) => cidr.network.family === 4);
    const free = enabled.map(({ cidr }) => {
      const used = held.filter((address) => address !== undefined && prefixContains(cidr, address)).length;
      return blockSize(cidr) - used;
    });
    return free.every((count) => count <= 0);
  });
}

/** Only where an agent runs. */
function incompleteNodes(world: World, ipam: IpamState): readonly string[] {
  const state = policyStateOf(world.records);
  return Array.from(world.nodes.values()).flatMap(({ name, isRegistered, host }) => {
    if (!isRegistered || host === undefined) return [];
    const node = state.routing.nodes.get(name);
    if (node === undefined) return [`node ${name} has no record`];
    if (node.addresses[4] === undefined && node.addresses[6] === undefined)
      return [`the record of node ${name} has no address`];
    return isExhausted(world, ipam) ? [] : missingTunnels(name, state, enabledFamilies(world));
  });
}

/** A tunnel of a disabled pool has an address of another pool. */
function enabledFamilies({ records }: World): ReadonlySet<Family> {
  const pools = records.under(POOL.prefix()).map(({ key, value }) => readStoredPool(value, key));
  return new Set(pools.filter(({ disabled }) => !disabled).map(({ cidr }) => cidr.network.family));
}

function missingTunnels(name: string, { routing }: PolicyState, enabled: ReadonlySet<Family>): readonly string[] {
  const node = routing.nodes.get(name);
  return routing.pools.flatMap(({ name: pool, mode, prefix }) => {
    const { family } = prefix.network;
    if (!enabled.has(family) || mode.kind === "unencapsulated" || node?.addresses[family] === undefined) return [];
    const end = mode.kind === "vxlan" ? node.vxlan[family] : node.ipip;
    return end === undefined ? [`node ${name} has no ${mode.kind} address, which pool "${pool}" needs`] : [];
  });
}
