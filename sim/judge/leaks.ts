/**
 * Nothing is left of what is gone: at rest, and longer ago than the product promises to need (`boundOfLeaks`), every
 * address, handle, claim, endpoint and record belongs to a container that is attached, or to a node that exists.
 */

import { UPKEEP_MILLISECONDS } from "../../src/agent/upkeep/upkeep-part.ts";
import { pauseBetweenLists } from "../../src/controllers/leaks/orphaned-handles.ts";
import type { ControllerSettings } from "../../src/controllers/settings.ts";
import { formatPrefix, prefixCovers } from "../../src/ip/prefix.ts";
import { isEmpty } from "../../src/ipam/block.ts";
import { millisecondsOf } from "../../src/model/duration.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../../src/model/ipam-block.ts";
import { ALL_BORROWED_PREFIX, parseKey } from "../../src/model/keys.ts";
import { ENDPOINT, NODE } from "../../src/model/kinds.ts";
import type { Node } from "../../src/model/node.ts";
import { recordedTunnelAddress, TUNNEL_ADDRESSES, TUNNEL_TYPE_ATTRIBUTE } from "../../src/model/tunnel-address.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { Invariant, World, WorldAttachment } from "./invariant.ts";
import { type IpamState, ipamReader, isUsedBy } from "./ipam-state.ts";

/**
 * How long it may take until nothing is left, in milliseconds. The collector looks twice in each grace period, and
 * releases what was unused at every look for the whole period. A block that is empty only then is another matter, and
 * needs the same time again; so do the claims of a node, and handles, which are listed now and then. An agent sees in two
 * passes of its upkeep that nothing leads to an endpoint.
 */
export function boundOfLeaks({ running: { controllers } }: ControllerSettings): number {
  const { leakGracePeriod, reconcilerPeriod } = controllers.node ?? { leakGracePeriod: "0s", reconcilerPeriod: "0s" };
  const grace = millisecondsOf(leakGracePeriod);
  const ofControllers = 2 * grace + pauseBetweenLists(grace) + millisecondsOf(reconcilerPeriod);
  return Math.max(ofControllers, 3 * UPKEEP_MILLISECONDS);
}

export function noLeakedRecord(read = ipamReader()): Invariant {
  return {
    name: "no leaked record",
    when: "at rest",
    check(world) {
      const state = read(world.records);
      const nodes = nodesIn(world);
      return [
        ...leakedAddresses(world, state, nodes),
        ...leakedHandles(state),
        ...leakedBlocks(world, state),
        ...leakedEndpoints(world),
        ...[...nodes.keys()]
          .filter((name) => !isRegistered(world, name))
          .map((name) => `Node "${name}" is recorded, but the orchestrator has no such node`),
      ];
    },
  };
}

/** The product's records of nodes, by name. */
function nodesIn({ records }: World): ReadonlyMap<string, Node> {
  return new Map(
    records.under(NODE.prefix()).map(({ key, value }) => {
      const node = NODE.codec.read(value, key);
      return [node.metadata.name, node];
    }),
  );
}

function endpointsIn({ records }: World): readonly WorkloadEndpoint[] {
  return records.under(ENDPOINT.prefix()).map(({ key, value }) => ENDPOINT.codec.read(value, key));
}

function leakedAddresses(world: World, { holdings }: IpamState, nodes: ReadonlyMap<string, Node>): readonly string[] {
  const used = new Map<string, WorldAttachment>();
  for (const { attachments } of world.nodes.values()) {
    for (const attachment of attachments.values()) {
      if (attachment.state === "attached" && isOfPod(world, attachment))
        for (const address of attachment.addresses) used.set(address, attachment);
    }
  }
  return [...holdings.values()].flatMap((held) => {
    const tunnel = TUNNEL_ADDRESSES.find(({ type }) => type === held.secondary[TUNNEL_TYPE_ATTRIBUTE]);
    if (tunnel === undefined) {
      const { containerId } = used.get(held.address) ?? {};
      const isUsed = containerId !== undefined && isUsedBy(held, containerId);
      return isUsed ? [] : [`Address ${held.address} is held by "${held.handle}", and no container has it`];
    }
    const node = nodes.get(held.secondary[NODE_ATTRIBUTE] ?? "");
    if (node !== undefined && recordedTunnelAddress(node.spec, tunnel.kind) === held.address) return [];
    return [`Address ${held.address} is held by "${held.handle}", and no node has such a tunnel`];
  });
}

function isOfPod({ pods }: World, { pod: { namespace, name, uid } }: WorldAttachment): boolean {
  return pods.get(`${namespace}/${name}`)?.uid === uid;
}

function leakedHandles({ handles, holdings }: IpamState): readonly string[] {
  const holding = new Set(Array.from(holdings.values(), ({ handle }) => handle));
  return handles
    .filter(({ handleId }) => !holding.has(handleId))
    .map(({ handleId }) => `Handle "${handleId}" is recorded, and has no address`);
}

/** Of each pool, a node may keep one empty block; outside all pools none. */
function leakedBlocks(world: World, { blocks, affinities, pools }: IpamState): readonly string[] {
  const ofGone = affinities
    .filter(({ node }) => !isRegistered(world, node))
    .map(({ node, cidr }) => `Node "${node}" claims block ${formatPrefix(cidr)}, and is gone`);
  const borrowed = world.records
    .under(ALL_BORROWED_PREFIX)
    .flatMap(({ key }) => {
      const parts = parseKey(key);
      return parts?.kind === "borrowed" && !isRegistered(world, parts.node) ? [parts] : [];
    })
    .map(({ node, cidr }) => `Node "${node}" has borrowed from block ${formatPrefix(cidr)}, and is gone`);
  const { inside = [], outside = [] } = Object.groupBy(blocks.filter(isEmpty), ({ cidr }) =>
    pools.some((pool) => prefixCovers(pool, cidr)) ? "inside" : "outside",
  );
  const byOwner = Map.groupBy(inside, (block) => ownerOf(block, pools));
  const surplus = [...byOwner].flatMap(([owner, [, ...others]]) =>
    others.map(({ cidr }) => `Block ${formatPrefix(cidr)} of ${owner} is empty, and not the only one`),
  );
  const poolless = outside.map(({ cidr }) => `Block ${formatPrefix(cidr)} is empty, and in no pool`);
  return [...ofGone, ...borrowed, ...surplus, ...poolless];
}

function ownerOf(block: IPAMBlock, pools: IpamState["pools"]): string {
  const pool = pools.find((each) => prefixCovers(each, block.cidr));
  return `node "${affineNode(block) ?? ""}" in pool ${pool === undefined ? "" : formatPrefix(pool)}`;
}

function leakedEndpoints(world: World): readonly string[] {
  return endpointsIn(world).flatMap(({ metadata, spec: { node = "", containerID = "" } }) => {
    const attachment = world.nodes.get(node)?.attachments.get(containerID);
    if (attachment?.state === "attached" && isOfPod(world, attachment)) return [];
    const title = `Endpoint ${metadata.namespace}/${metadata.name}`;
    return [`${title} is of container "${containerID}" on node "${node}", which is not attached`];
  });
}

function isRegistered({ nodes }: World, name: string): boolean {
  return nodes.get(name)?.isRegistered === true;
}
