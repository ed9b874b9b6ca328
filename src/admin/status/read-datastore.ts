/** What the datastore of the network says about pools and releases. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import { clusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import { NODE } from "../../model/kinds.ts";
import { nodeVersion } from "../../upkeep/node-versions.ts";
import { blockAt, findBlocks } from "../ipam/blocks.ts";
import { findPools, findReserved } from "../ipam/pools.ts";
import { poolUsage } from "../ipam/usage.ts";
import type { DatastoreState, PoolState } from "./facts.ts";

export async function readDatastoreState(store: Datastore, kind: string): Promise<DatastoreState> {
  const [entry] = (await store.read([WANTED_CLUSTER])).answers[0] ?? [];
  const version = entry && clusterVersion(clusterInformation.read(entry.value, entry.key));
  const nodes = await readAllEntries(store, NODE.prefix());
  return {
    kind,
    pools: await readPools(store),
    agents: nodes.map(nodeVersion),
    nodes: readEach(nodes, ({ value, key }) => NODE.codec.read(value, key)).readable,
    ...(version === undefined ? {} : { clusterVersion: version }),
  };
}

async function readPools(store: Datastore): Promise<readonly PoolState[]> {
  const [pools, reserved, blocks] = [await findPools(store), await findReserved(store), await findBlocks(store)];
  const records = {
    blocks: blocks.readable,
    unreadable: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    reserved: reserved.readable,
  };
  return pools.readable.map((pool) => {
    const { cidr, disabled, size, used, free } = poolUsage(pool, records);
    return { name: pool.name, cidr, disabled, size, used, free };
  });
}
