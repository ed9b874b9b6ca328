/**
 * Repairs what endpoints and allocations say of one address:
 *
 *   unallocated, one endpoint           allocated to the container of the endpoint
 *   two endpoints of one pod            the one that it is not allocated to loses it
 *   two workloads                       the operator decides: both may be running
 *
 * No allocation is released.
 */
import type { Entry, OrderedChange } from "../../../datastore/datastore.ts";
import { identity } from "../../../identity.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { blockOf } from "../../../ip/block.ts";
import { prefixContains } from "../../../ip/prefix.ts";
import { assignOrdinal, emptyBlock, ordinalIn, ordinalsOf } from "../../../ipam/block.ts";
import { withHeldAddresses } from "../../../ipam/proven-endpoint.ts";
import { blockChange, blockRewrite, decodeBlock, decodeHandle, handleRecordChange } from "../../../ipam/records.ts";
import { blockName } from "../../../ipam/view.ts";
import { hostAffinity, type IPAMBlock } from "../../../model/ipam-block.ts";
import { blockKey, handleKey, resourceKey } from "../../../model/keys.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../../model/workload-endpoint.ts";
import { addressesOfEndpoint, describeUser, nameOfEndpoint } from "../address-users.ts";
import { type Allocation, allocationsOf } from "../blocks.ts";
import { attributesOfEndpoint, isAllocatedTo, isOfContainer, isSamePod } from "../endpoint-owner.ts";
import { findPools } from "../pools.ts";
import { confirmAffinity } from "./confirm-affinity.ts";
import type { RepairContext } from "./repair-context.ts";

/** Returns what the operator can do, if something is left to do. */
export async function repairAddressTwice(address: Address, context: RepairContext): Promise<string | undefined> {
  const users = usersOf(address, context);
  const allocation = allocationOf(address, context);
  const owners = allocation ? users.filter((each) => isAllocatedTo(each, allocation)) : [];
  const [owner] = owners;
  if (owner === undefined || owners.length > 1) return remedyForEqualUsers(address, users, allocation);
  const others = users.filter((each) => each !== owner);
  for (const former of others.filter((each) => isSamePod(each, owner))) await takeAddress(address, former, context);
  const left = others.filter((each) => !isSamePod(each, owner));
  if (left.length === 0) return undefined;
  const containers = left.map((endpoint) => describeUser({ endpoint }));
  return `${formatAddress(address)} is allocated to ${nameOfEndpoint(owner)}; end the container of ${containers.join(", ")}, or, if it no longer exists, ${left.map((each) => deletionOf(each, allocation)).join(" and ")}`;
}

/** Returns what the operator can do, if something is left to do. */
export async function allocateToEndpoint(address: Address, context: RepairContext): Promise<string | undefined> {
  const users = usersOf(address, context);
  const [endpoint] = users;
  if (endpoint === undefined) return undefined;
  if (users.length > 1) return remedyForEqualUsers(address, users, undefined);
  const { store, now } = context;
  const cidr = await blockAround(address, context);
  if (cidr === undefined) return undefined;

  const attributes = attributesOfEndpoint(endpoint, now);
  const keys = [blockKey(cidr), handleKey(attributes.handleId), keyOf(endpoint)];
  const { answers } = await store.read(keys.map((key) => ({ kind: "key", key })));
  const [[blockEntry] = [], [handleEntry] = [], [endpointEntry] = []] = answers;
  if (!isUnchanged(endpoint, endpointEntry, context)) return undefined;
  const { node } = endpoint.spec;
  const affinity = node === undefined ? undefined : hostAffinity(node);
  const before = blockEntry ? decodeBlock(blockEntry) : emptyBlock(cidr, affinity, BigInt(now.getTime()) * 1_000_000n);
  const taken = assignOrdinal(before, ordinalIn(before, address) ?? -1, attributes)?.block;
  if (!taken) return undefined;
  const counted = countedChanges(attributes.handleId, taken, handleEntry);
  const written = await store.commit([
    // Its DEL may come at this moment.
    { kind: "expect", key: endpointEntry.key, revision: endpointEntry.revision },
    ...(blockEntry
      ? [...counted, blockChange(taken, blockEntry.revision)]
      : [blockChange(before, undefined), ...counted, blockRewrite(taken)]),
  ]);
  if (written.ok && !blockEntry && node !== undefined) await confirmAffinity(cidr, node, store);
  return undefined;
}

/** The handle with its count in this block. */
function countedChanges(handle: string, block: IPAMBlock, entry: Entry | undefined): readonly OrderedChange[] {
  const stored = entry && decodeHandle(entry);
  const counts = { ...stored?.blocks, [blockName(block.cidr)]: ordinalsOf(block, { handle }).length };
  return handleRecordChange(handle, counts, { revision: stored?.revision });
}

/** The block that the address is in, or would be in. */
async function blockAround(address: Address, { records, store }: RepairContext) {
  const existing = records.blocks.find(({ cidr }) => prefixContains(cidr, address));
  if (existing) return existing.cidr;
  const pool = (await findPools(store)).readable.find(({ cidr }) => prefixContains(cidr, address));
  return pool && blockOf(address, pool.blockLength);
}

/** The endpoints that name the address. */
export function usersOf(address: Address, { endpoints }: RepairContext): readonly WorkloadEndpoint[] {
  const text = formatAddress(address);
  return endpoints.filter((each) => addressesOfEndpoint(each).some((own) => formatAddress(own) === text));
}

export function allocationOf(address: Address, { records }: RepairContext): Allocation | undefined {
  const text = formatAddress(address);
  return records.blocks
    .filter(({ cidr }) => prefixContains(cidr, address))
    .flatMap(allocationsOf)
    .find((each) => formatAddress(each.address) === text);
}

/** Removes the address from the endpoint, and the endpoint if that was its only one; nothing if it has changed. */
async function takeAddress(address: Address, endpoint: WorkloadEndpoint, context: RepairContext): Promise<void> {
  const { store } = context;
  const key = keyOf(endpoint);
  const entry: Entry | undefined = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
  if (!isUnchanged(endpoint, entry, context)) return;
  const text = formatAddress(address);
  const networks = endpoint.spec.ipNetworks ?? [];
  const left = networks.filter((each) => !addressesOf(each).includes(text));
  const value = workloadEndpoint.write({ ...endpoint, spec: { ...endpoint.spec, ipNetworks: left } });
  const { revision } = entry;
  await store.commit([
    left.length === 0 ? { kind: "delete", key, revision } : { kind: "update", key, value, revision },
  ]);
}

/** Whether the endpoint is stored as the check read it. */
function isUnchanged(endpoint: WorkloadEndpoint, entry: Entry | undefined, { records }: RepairContext): entry is Entry {
  if (entry === undefined) return false;
  return Bun.deepEquals(withHeldAddresses(workloadEndpoint.read(entry.value, entry.key), records.blocks), endpoint);
}

function addressesOf(network: string): readonly string[] {
  return addressesOfEndpoint({ spec: { ipNetworks: [network] } }).map(formatAddress);
}

function keyOf({ metadata }: WorkloadEndpoint): string {
  return resourceKey("workloadendpoints", { name: metadata.name, namespace: metadata.namespace ?? "default" });
}

function remedyForEqualUsers(
  address: Address,
  users: readonly WorkloadEndpoint[],
  allocation: Allocation | undefined,
): string {
  const containers = users.map((endpoint) => describeUser({ endpoint }));
  const deletions = users.map((each) => deletionOf(each, allocation));
  return `decide who keeps ${formatAddress(address)}, and end the container of the others: ${containers.join(", ")}; if one no longer exists, ${deletions.join(" or ")}; then run this command again`;
}

/** `delete` asks for --force if it takes the allocation for one of the endpoint. */
function deletionOf({ metadata, spec }: WorkloadEndpoint, allocation: Allocation | undefined): string {
  const force = allocation !== undefined && isOfContainer(allocation, spec.containerID) ? " --force" : "";
  return `"${identity.adminTool} delete workloadendpoint ${metadata.name} -n ${metadata.namespace}${force}"`;
}
