/** Everything the allocator ever wrote, read page by page: for checks and reports, never on the way of an ADD. */
import type { Datastore } from "../datastore/datastore.ts";
import { readAllEntries } from "../datastore/read-all.ts";
import { ALL_AFFINITIES_PREFIX, blocksPrefix, HANDLES_PREFIX, parseKey, resourcesPrefix } from "../model/keys.ts";
import type { World } from "./invariants.ts";
import { decodeAffinity, decodeBlock, decodeHandle, decodePool } from "./records.ts";

export async function readWorld(store: Datastore): Promise<World> {
  const pools = await readAllEntries(store, resourcesPrefix("ippools"));
  const affinities = await readAllEntries(store, ALL_AFFINITIES_PREFIX);
  const handles = await readAllEntries(store, HANDLES_PREFIX);
  const blocks = [...(await readAllEntries(store, blocksPrefix(4))), ...(await readAllEntries(store, blocksPrefix(6)))];
  return {
    pools: pools.map((entry) => decodePool(entry).cidr),
    blocks: blocks.map(decodeBlock),
    handles: handles.flatMap((entry) => {
      const parts = parseKey(entry.key);
      return parts?.kind === "handle" ? [{ handleId: parts.handleId, blocks: decodeHandle(entry).blocks }] : [];
    }),
    affinities: affinities.flatMap((entry) => {
      const parts = parseKey(entry.key);
      const affinity = decodeAffinity(entry);
      return parts?.kind === "affinity" && affinity ? [{ node: parts.node, cidr: affinity.cidr }] : [];
    }),
  };
}
