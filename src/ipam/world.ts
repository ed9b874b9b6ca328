/** Everything the allocator ever wrote, read page by page: for checks and reports, never on the way of an ADD. */
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { ALL_AFFINITIES_PREFIX, blocksPrefix, HANDLES_PREFIX, parseKey, resourcesPrefix } from "../model/keys.ts";
import type { World } from "./invariants.ts";
import { decodeAffinity, decodeBlock, decodeHandle, decodePool } from "./records.ts";

const PAGE = 500;

export async function readWorld(store: Datastore): Promise<World> {
  const pools = await readAll(store, resourcesPrefix("ippools"));
  const affinities = await readAll(store, ALL_AFFINITIES_PREFIX);
  const handles = await readAll(store, HANDLES_PREFIX);
  const blocks = [...(await readAll(store, blocksPrefix(4))), ...(await readAll(store, blocksPrefix(6)))];
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

async function readAll(store: Datastore, prefix: string): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for (;;) {
    const after = all.at(-1)?.key;
    const { answers } = await store.read([
      { kind: "prefix", prefix, limit: PAGE, ...(after === undefined ? {} : { after }) },
    ]);
    const page = answers[0] ?? [];
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
