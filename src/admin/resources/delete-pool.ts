/**
 * Deleting a pool: it must not leave blocks behind that nobody can explain.
 *
 *   in use? ──> refuse          (unless forced: addresses in use then stay, in no pool)
 *   disable ──> a moment ──> take its blocks from their nodes ──> delete
 *
 * Once it is disabled nobody is given an address of it any more: whoever read it
 * while it was enabled loses his commit. The moment is for a store that cannot
 * promise that, and for writers of other releases; what they left is found by
 * looking once more.
 */
import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach, Unreadable } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { type IPPool, ipPool, poolPrefix } from "../../model/ip-pool.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { allocationsOf, blocksWithin, describeAllocation } from "../ipam/blocks.ts";
import type { Deletion, StoredResource } from "../kinds/kind.ts";
import { claimsWithin, releaseClaims } from "./claims.ts";
import type { Done } from "./done.ts";
import { lostRace } from "./lost-race.ts";
import { wayOutOfRecord } from "./record-way-out.ts";

const MOMENT_MILLISECONDS = 500;
const SHOWN_USERS = 10;

type StoredPool = StoredResource<IPPool>;

export async function deletePool(store: Datastore, stored: StoredPool, { context, inUse }: Deletion): Promise<Done> {
  const pool = stored.resource;
  const range = poolPrefix(pool);
  const name = pool.metadata.name;
  if (inUse === "refuse") requireUnused(name, await blocksWithin(store, range));

  const wasEnabled = !pool.spec.disabled;
  const disabled = await setDisabled(store, stored, true);
  try {
    if (wasEnabled) await context.wait(MOMENT_MILLISECONDS);
    const { claims } = await claimsWithin(store, range);
    await releaseClaims(store, claims, { context, inUse: inUse === "release" ? "release" : "keep" });
    const left = await blocksWithin(store, range);
    if (inUse === "refuse") requireUnused(name, left);
    const written = await store.commit([{ kind: "delete", key: disabled.key, revision: disabled.revision }]);
    if (!written.ok && written.reason !== "missing") throw lostRace(cannotDelete(name), written.reason);
    return { action: "deleted", ...noteOf(left) };
  } catch (failure) {
    // Somebody began to use it meanwhile: as if nothing had been asked.
    if (wasEnabled) await setDisabled(store, disabled, false).catch(() => {});
    throw failure;
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

function requireUnused(name: string, { readable, unreadable }: ReadEach<IPAMBlock>): void {
  const users = readable.flatMap(allocationsOf);
  if (users.length === 0 && unreadable[0]) throw cannotTell(name, unreadable[0]);
  if (users.length === 0) return;
  const shown = users.slice(0, SHOWN_USERS).map(describeAllocation).join(", ");
  const more = users.length > SHOWN_USERS ? ` and ${users.length - SHOWN_USERS} more` : "";
  throw new PluginError(
    "resource-in-use",
    `${cannotDelete(name)}: ${counted(users.length, "of its addresses is", "of its addresses are")} in use: ${shown}${more}`,
    { details: "disable the pool and recreate the workloads first, or insist with --force" },
  );
}

function cannotTell(name: string, { key, failure }: Unreadable): PluginError {
  return new PluginError(
    "resource-in-use",
    `${cannotDelete(name)}: whether its addresses are in use cannot be told: ${failure.message}`,
    { details: `${wayOutOfRecord(key)}; or insist with --force`, cause: failure },
  );
}

function noteOf({ readable, unreadable }: ReadEach<IPAMBlock>): Pick<Done, "note"> {
  const count = readable.flatMap(allocationsOf).length;
  const stay = counted(count, "address stays in use and lies", "addresses stay in use and lie");
  const notes = [
    ...(count === 0 ? [] : [`${stay} in no pool now`]),
    ...unreadable.map(({ key, failure }) => `a block is left as it was: ${failure.message} (${wayOutOfRecord(key)})`),
  ];
  return notes.length === 0 ? {} : { note: notes.join("; ") };
}

function cannotDelete(name: string): string {
  return `Cannot delete ippool/${name}`;
}
