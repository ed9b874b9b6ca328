/**
 * Repairs what `ipam check` found, if the records show what the correct state
 * is. Each repair reads again and commits against the revisions it read, so a
 * repair that comes too late changes nothing.
 *
 *   handle with a wrong count               counted again from its blocks
 *   affinity for no block or another's      deleted
 *   empty block without a node              deleted
 *   block whose node has no affinity        affinity created, and confirmed
 *   inconsistent block                      its queue of free addresses is rebuilt
 *   address without its endpoint            released
 */
import type { Change, Datastore, Entry } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { isEmpty, ordinalsOf, touched } from "../../ipam/block.ts";
import type { World } from "../../ipam/invariants.ts";
import { affinityChange, blockChange, requirePrefix } from "../../ipam/records.ts";
import { affineNode, type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { affinityKey, blockKey } from "../../model/keys.ts";
import type { Allocation } from "./blocks.ts";
import type { Finding } from "./findings.ts";

export interface RepairContext {
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly world: World;
}

/** Returns whether it was repaired; `false` if that needs an operator, or if the records changed meanwhile. */
export async function repair(finding: Finding, context: RepairContext): Promise<boolean> {
  switch (finding.kind) {
    case "allocation-without-handle":
    case "handle-count-wrong":
    case "handle-without-block":
      return recount(finding.handle ?? "", context);
    case "affinity-stale":
    case "affinity-without-block": {
      const request = { node: finding.node ?? "", block: requirePrefix(finding.block ?? ""), inUse: "keep" } as const;
      return (await context.allocator.releaseAffinity(request)) === "released";
    }
    case "block-abandoned":
      return changeBlock(finding.block ?? "", context, (block, revision) =>
        isEmpty(block) && block.affinity === undefined
          ? [{ kind: "delete", key: blockKey(block.cidr), revision }]
          : undefined,
      );
    case "affinity-unconfirmed":
    case "block-without-affinity":
      return confirmClaim(requirePrefix(finding.block ?? ""), finding.node ?? "", context.store);
    case "block-inconsistent":
      return changeBlock(finding.block ?? "", context, (block, revision) => {
        const repaired = repairedBlock(block);
        return repaired && [blockChange(repaired, revision)];
      });
    case "allocation-without-endpoint":
      return releaseLeak("leaked" in finding ? finding.leaked : undefined, context.allocator);
    case "blocks-overlap":
    case "allocation-outside-pools":
    case "address-twice":
    case "endpoint-without-allocation":
    case "record-unreadable":
      return false;
  }
}

async function recount(handle: string, { allocator, world }: RepairContext): Promise<boolean> {
  const blocks = world.blocks.filter((block) => ordinalsOf(block, { handle }).length > 0);
  await allocator.recountHandle({ handle, likely: blocks.map(({ cidr }) => cidr) });
  return true;
}

/** After a write of the block, so that a concurrent release of the claim fails. */
async function confirmClaim(cidr: Prefix, node: string, store: Datastore): Promise<boolean> {
  const keys = [blockKey(cidr), affinityKey(node, cidr)];
  const { answers } = await store.read(keys.map((key) => ({ kind: "key", key })));
  const [[entry] = [], [claim] = []] = answers;
  const block = entry && readBlock(entry.value, entry.key);
  if (!block || affineNode(block) !== node) return false;
  const written = await store.commit([
    blockChange(touched(block), entry.revision),
    affinityChange({ node, cidr }, "confirmed", claim?.revision),
  ]);
  return written.ok;
}

async function changeBlock(
  name: string,
  { store }: RepairContext,
  change: (block: IPAMBlock, revision: string) => readonly Change[] | undefined,
): Promise<boolean> {
  const { answers } = await store.read([{ kind: "key", key: blockKey(requirePrefix(name)) }]);
  const entry: Entry | undefined = answers[0]?.[0];
  const changes = entry && change(readBlock(entry.value, entry.key), entry.revision);
  return changes !== undefined && (await store.commit(changes)).ok;
}

/** Rebuilds the queue of free addresses and the sequence number from the allocations. `undefined` if an owner is missing. */
function repairedBlock(block: IPAMBlock): IPAMBlock | undefined {
  if (block.allocations.some((index) => index !== undefined && !block.attributes[index])) return undefined;
  const isFree = (ordinal: number) => block.allocations[ordinal] === undefined;
  const queue = new Set([...block.unallocated, ...block.allocations.keys()].filter(isFree));
  const used = [...new Set(block.allocations.filter((index) => index !== undefined))];
  let sequenceNumber = block.sequenceNumber;
  for (const given of Object.values(block.sequenceNumberForAllocation)) {
    if (given >= sequenceNumber) sequenceNumber = given + 1n;
  }
  return {
    ...block,
    allocations: block.allocations.map((index) => (index === undefined ? undefined : used.indexOf(index))),
    attributes: used.flatMap((index) => block.attributes[index] ?? []),
    unallocated: [...queue],
    sequenceNumber: sequenceNumber + 1n,
  };
}

async function releaseLeak(leaked: Allocation | undefined, allocator: Allocator): Promise<boolean> {
  if (!leaked) return false;
  const { address, handle, sequenceNumber } = leaked;
  const { released } = await allocator.releaseAddresses([
    {
      address,
      ...(handle === undefined ? {} : { handle }),
      ...(sequenceNumber === undefined ? {} : { sequenceNumber }),
    },
  ]);
  return released.length > 0;
}
