/**
 * Repairs what `ipam check` found. Each repair reads again and commits against the
 * revisions it read, so a repair that comes too late changes nothing.
 *
 *   handle with a wrong count               counted again from its blocks
 *   affinity for no block or another's      deleted
 *   empty block without a node              deleted
 *   block whose node has no affinity        affinity created, and confirmed
 *   inconsistent block                      its queue of free addresses is rebuilt
 *   blocks that overlap                     merged; not if they contradict each other
 *   address without its endpoint            released
 *   endpoint without its allocation         allocated to the endpoint's container
 *   address of two endpoints                taken from the former endpoint of the same pod
 *
 * What the records do not decide is left to the operator, with the commands to choose from.
 */
import type { Change, Entry } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { type Address, parseAddress } from "../../../ip/address.ts";
import type { Allocator } from "../../../ipam/allocator.ts";
import { ordinalsOf } from "../../../ipam/block.ts";
import { blockChange, requirePrefix } from "../../../ipam/records.ts";
import { deleteUnneededBlock, isEmptyWithoutNode } from "../../../ipam/release/block-after-release.ts";
import { guarded } from "../../../ipam/request.ts";
import { type IPAMBlock, NODE_ATTRIBUTE, readBlock } from "../../../model/ipam-block.ts";
import { blockKey } from "../../../model/keys.ts";
import { tunnelTitle } from "../../../model/tunnel-address.ts";
import { describeUser } from "../address-users.ts";
import type { Allocation } from "../blocks.ts";
import type { Finding } from "./check-once.ts";
import { confirmAffinity } from "./confirm-affinity.ts";
import { remedyOfTunnelOutsidePools, remedyOutsidePools } from "./outside-pools.ts";
import type { RepairContext } from "./repair-context.ts";
import { allocateToEndpoint, allocationOf, repairAddressTwice, usersOf } from "./repair-endpoints.ts";
import { repairOverlap } from "./repair-overlap.ts";

/** Returns what the operator can do if the repair needs a decision; whether it is repaired, the next check says. */
export async function repair(finding: Finding, context: RepairContext): Promise<string | undefined> {
  switch (finding.kind) {
    case "allocation-without-handle":
    case "handle-count-wrong":
    case "handle-without-block":
      return recount(finding.handle ?? "", context);
    case "affinity-stale":
    case "affinity-without-block": {
      const request = { node: finding.node ?? "", block: requirePrefix(finding.block ?? ""), inUse: "keep" } as const;
      await context.allocator.releaseAffinity(request);
      return undefined;
    }
    case "block-abandoned":
      await deleteUnneededBlock(context.store, requirePrefix(finding.block ?? ""), isEmptyWithoutNode);
      return undefined;
    case "affinity-unconfirmed":
    case "block-without-affinity":
      await confirmAffinity(requirePrefix(finding.block ?? ""), finding.node ?? "", context.store);
      return undefined;
    case "block-inconsistent":
      return changeBlock(finding.block ?? "", context, (block, revision) => {
        const repaired = repairedBlock(block);
        return repaired && [blockChange(repaired, revision)];
      });
    case "blocks-overlap":
      return repairOverlap(requirePrefix(finding.block ?? ""), context);
    case "allocation-without-endpoint":
      return releaseLeak("leaked" in finding ? finding.leaked : undefined, context.allocator);
    case "address-twice":
      return repairAddressTwice(addressOf(finding), context);
    case "endpoint-without-allocation":
      return allocateToEndpoint(addressOf(finding), context);
    case "pools-overlap":
      return `delete one of the two pools: "${identity.adminTool} delete ippool ${finding.pool ?? ""}" deletes the one that is not used`;
    case "list-outside-pools":
      return `create a pool that contains them, or remove them: "${identity.adminTool} edit ipaddresslist ${finding.list ?? ""}"`;
    case "allocation-outside-pools":
      return remedyFor(finding, context);
    case "record-unreadable":
      return finding.remedy;
  }
}

function addressOf({ address = "" }: { readonly address?: string }): Address {
  const parsed = parseAddress(address);
  if (parsed) return parsed;
  throw new PluginError("internal", `Cannot repair: "${address}" is not an address`);
}

function remedyFor(finding: { readonly address?: string; readonly block?: string }, context: RepairContext): string {
  const address = addressOf(finding);
  const { secondary = {} } = allocationOf(address, context) ?? {};
  if (tunnelTitle(secondary) !== undefined) {
    return remedyOfTunnelOutsidePools(address, secondary[NODE_ATTRIBUTE] ?? "?");
  }
  const users = usersOf(address, context).map((endpoint) => describeUser({ endpoint }));
  return remedyOutsidePools({
    address,
    block: requirePrefix(finding.block ?? ""),
    pools: context.records.pools,
    users,
  });
}

async function recount(handle: string, { allocator, records }: RepairContext): Promise<undefined> {
  const blocks = records.blocks.filter((block) => ordinalsOf(block, { handle }).length > 0);
  await allocator.recountHandle({ handle, likely: blocks.map(({ cidr }) => cidr) });
}

async function changeBlock(
  name: string,
  { store }: RepairContext,
  change: (block: IPAMBlock, revision: string) => readonly Change[] | undefined,
): Promise<undefined> {
  const { answers } = await store.read([{ kind: "key", key: blockKey(requirePrefix(name)) }]);
  const entry: Entry | undefined = answers[0]?.[0];
  const changes = entry && change(readBlock(entry.value, entry.key), entry.revision);
  if (changes !== undefined) await store.commit(changes);
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

async function releaseLeak(leaked: Allocation | undefined, allocator: Allocator): Promise<undefined> {
  if (leaked) await allocator.releaseAddresses([guarded(leaked)]);
}
