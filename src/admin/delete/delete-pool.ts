/**
 * Deletes a pool without leaving orphaned blocks behind.
 *
 *   in use? ──> refuse          (unless forced: addresses in use then stay, outside all pools)
 *   disable ──> short delay ──> release its blocks from their nodes ──> delete ──> the addresses of tunnels, and their blocks
 *
 * Once the pool is disabled, no more addresses are assigned from it: a commit
 * that was decided while it was enabled fails. The delay is for a store that
 * cannot guarantee that, and for writers of other releases; a second look finds
 * what they wrote, before anything is released. Addresses of tunnels do not prevent the deletion: the agents of their
 * nodes take others when the pool is gone, or none if no pool needs the tunnel. Nothing of them is released before: a
 * deletion that fails leaves every node its tunnels.
 */
import { counted, listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach, Unreadable } from "../../datastore/read-each.ts";
import { type ErrorKind, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { deleteUnneededBlock, isEmptyWithoutNode } from "../../ipam/release/block-after-release.ts";
import { type IPPool, ipPool, poolPrefix } from "../../model/ip-pool.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { allocationsOf, blocksWithin, describeAllocation } from "../ipam/blocks.ts";
import { findPools } from "../ipam/pools.ts";
import type { Deletion, StoredResource } from "../kinds/kind.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { ipamRecordRemedy } from "../resources/ipam-record-remedy.ts";
import { lostRace } from "../resources/lost-race.ts";
import { affinitiesWithin, releaseAffinities } from "./block-affinities.ts";
import { isInPool, isOfTunnel, releaseTunnelAddresses } from "./remaining-tunnel-addresses.ts";

const DISABLE_DELAY_MILLISECONDS = 500;
const SHOWN_USERS = 10;

type StoredPool = StoredResource<IPPool>;

export async function deletePool(
  store: Datastore,
  stored: StoredPool,
  { context, inUse }: Deletion,
): Promise<ActionResult> {
  const pool = stored.resource;
  const range = poolPrefix(pool);
  const name = pool.metadata.name;
  if (inUse === "refuse") requireUnused(name, await blocksWithin(store, range));

  const wasEnabled = !pool.spec.disabled;
  let current = stored;
  try {
    current = await setDisabled(store, stored, true);
    if (wasEnabled) await context.wait(DISABLE_DELAY_MILLISECONDS);
    if (inUse === "refuse") requireUnused(name, await blocksWithin(store, range));
    const { affinities } = await affinitiesWithin(store, range);
    await releaseAffinities(store, affinities, {
      context,
      inUse: inUse === "release" ? "release" : "keep",
      resting: "forget",
    });
    if (inUse === "refuse") requireUnused(name, await blocksWithin(store, range));
    const written = await store.commit([{ kind: "delete", key: current.key, revision: current.revision }]);
    if (!written.ok && written.reason !== "missing") throw lostRace(cannotDelete(name), written.reason);
  } catch (failure) {
    // The deletion failed, for example because the pool is in use again: restore it.
    if (wasEnabled) await enableAgain(store, current, failure);
    throw failure;
  }
  try {
    await releaseTunnelAddresses(store, range, context);
    const { readable, unreadable } = await blocksWithin(store, range);
    const pools = (await findPools(store)).readable;
    const outside = readable.filter((block) => !isInPool(block, pools));
    // Nothing is assigned from them: their addresses need not rest.
    for (const { cidr } of outside.filter(isEmptyWithoutNode))
      await deleteUnneededBlock(store, cidr, isEmptyWithoutNode);
    return { action: "deleted", ...noteOf({ readable: outside, unreadable }) };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { action: "deleted", note: `what is left in its blocks is not known: ${failure.message}` };
  }
}

async function setDisabled(store: Datastore, stored: StoredPool, disabled: boolean): Promise<StoredPool> {
  const pool = stored.resource;
  if (pool.spec.disabled === disabled) return stored;
  const resource = { ...pool, spec: { ...pool.spec, disabled } };
  const text = ipPool.write(resource, stored.text);
  const written = await store.commit([{ kind: "update", key: stored.key, value: text, revision: stored.revision }]);
  if (!written.ok) throw lostRace(cannotDelete(pool.metadata.name), written.reason);
  return { ...stored, resource, text, revision: written.revision };
}

/** `known`: the pool as it was last known to be in the datastore. Throws if it stays disabled, or may be. */
async function enableAgain(store: Datastore, known: StoredPool, failure: unknown): Promise<void> {
  try {
    const disabled = known.resource.spec.disabled ? known : await readIfWritten(store, known, failure);
    if (disabled) await setDisabled(store, disabled, false);
  } catch (cause) {
    if (kindOf(cause) !== "resource-missing") throw staysDisabled(known.resource, failure, cause);
  }
}

/** The pool after a write that failed: it may have been written nevertheless, unless it was refused. */
async function readIfWritten(store: Datastore, known: StoredPool, failure: unknown): Promise<StoredPool | undefined> {
  if (kindOf(failure) === "resource-changed" || kindOf(failure) === "resource-missing") return undefined;
  const [entry] = (await store.read([{ kind: "key", key: known.key }])).answers[0] ?? [];
  if (!entry) return undefined;
  const { key, value: text, revision } = entry;
  return { key, text, revision, resource: ipPool.read(text, key) };
}

function kindOf(failure: unknown): ErrorKind {
  return failure instanceof PluginError ? failure.kind : "internal";
}

/** The cause is why it could not be enabled: an interruption alone would not be reported with this. */
function staysDisabled({ metadata: { name }, spec }: IPPool, failure: unknown, cause: unknown): PluginError {
  const { message } = failure instanceof Error ? failure : new Error(String(failure));
  const details = failure instanceof PluginError && failure.details !== "" ? `${failure.details}; ` : "";
  const command = `${identity.adminTool} patch ippool ${name} -p '{"spec":{"disabled":false}}'`;
  return new PluginError(kindOf(failure), `${message}; the pool ${spec.disabled ? "stays" : "may be"} disabled`, {
    details: `${details}enable it with "${command}"`,
    cause,
  });
}

function requireUnused(name: string, { readable, unreadable }: ReadEach<IPAMBlock>): void {
  const users = readable.flatMap(allocationsOf).filter((each) => !isOfTunnel(each));
  if (users.length === 0 && unreadable[0]) throw usageUnknown(name, unreadable[0]);
  if (users.length === 0) return;
  const shown = listed(users.map(describeAllocation), SHOWN_USERS);
  throw new PluginError(
    "resource-in-use",
    `${cannotDelete(name)}: ${counted(users.length, "of its addresses is", "of its addresses are")} in use: ${shown}`,
    { details: "disable the pool and recreate the workloads first, or use --force" },
  );
}

function usageUnknown(name: string, { key, failure }: Unreadable): PluginError {
  return new PluginError(
    "resource-in-use",
    `${cannotDelete(name)}: whether its addresses are in use is unknown: ${failure.message}`,
    { details: `${ipamRecordRemedy(key)}; or use --force`, cause: failure },
  );
}

function noteOf({ readable, unreadable }: ReadEach<IPAMBlock>): Pick<ActionResult, "note"> {
  const allocations = readable.flatMap(allocationsOf);
  const tunnels = allocations.filter(isOfTunnel).length;
  const count = allocations.length - tunnels;
  const stay = counted(count, "address stays in use and is", "addresses stay in use and are");
  const replaced = counted(
    tunnels,
    "tunnel address stays until the agent of its node has replaced it",
    "tunnel addresses stay until the agents of their nodes have replaced them",
  );
  const notes = [
    ...(count === 0 ? [] : [`${stay} now outside all pools`]),
    ...(tunnels === 0 ? [] : [replaced]),
    ...unreadable.map(({ key, failure }) => `a block was not changed: ${failure.message} (${ipamRecordRemedy(key)})`),
  ];
  return notes.length === 0 ? {} : { note: notes.join("; ") };
}

function cannotDelete(name: string): string {
  return `Cannot delete ippool/${name}`;
}
