/**
 * Simulates a cluster that fills with pods: the real allocator on the memory
 * datastore, with every round trip counted.
 *
 * Pods arrive in random order, some concurrently on different nodes. Each ADD
 * does what a separate process would do: it opens a new connection and knows
 * nothing except the hints of its host.
 */
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { openHintMemory } from "../../src/ipam/hint-file.ts";
import type { HintStore } from "../../src/ipam/hints.ts";
import { nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import { seededRandom, shuffled } from "./seeded-random.ts";

export interface ClusterSize {
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly cidr: string;
  /** How many pods arrive concurrently. */
  readonly atOnce: number;
  readonly seed: number;
}

export interface ClusterGrowth {
  readonly size: ClusterSize;
  /** The round trips of every ADD, in the order of arrival. */
  readonly roundTrips: readonly number[];
  /** For every batch: the CPU time of its ADDs, divided by their number. It does not depend on the load of the host. */
  readonly millisecondsPerAdd: readonly number[];
  /** How many different addresses were assigned. */
  readonly addresses: number;
}

export async function growCluster(size: ClusterSize): Promise<ClusterGrowth> {
  const table = new MemoryTable();
  const nodes = Array.from({ length: size.nodes }, (_, index) => `node-${index}`);
  await seed(openMemory(table), poolChange("pods", size.cidr), ...nodes.map((name) => nodeChange(name)));
  const hints = new Map<string, HintStore>(nodes.map((name) => [name, openHintMemory()]));
  const random = seededRandom(size.seed);
  const arrivals = shuffled(
    nodes.flatMap((node) =>
      Array.from({ length: size.podsPerNode }, (_, pod) => ({ node, handle: `pods.${node}-${pod}` })),
    ),
    random,
  );

  const add = async ({ node, handle }: { node: string; handle: string }): Promise<Added> => {
    const store = openMemory(table);
    const means = { now: () => new Date(), random, wait: nextTurn, hints: hints.get(node) ?? openHintMemory() };
    const { addresses } = await openAllocator(store, means).assign(request(handle, { node }));
    return { roundTrips: store.roundTrips, address: addresses.map((each) => formatAddress(each.address)).join() };
  };

  const added: Added[] = [];
  const millisecondsPerAdd: number[] = [];
  for (let first = 0; first < arrivals.length; first += size.atOnce) {
    const batch = arrivals.slice(first, first + size.atOnce);
    const started = process.cpuUsage();
    added.push(...(await Promise.all(batch.map(add))));
    const { user, system } = process.cpuUsage(started);
    millisecondsPerAdd.push((user + system) / 1000 / batch.length);
    table.forgetHistory();
  }
  return {
    size,
    roundTrips: added.map((each) => each.roundTrips),
    millisecondsPerAdd,
    addresses: new Set(added.map((each) => each.address)).size,
  };
}

interface Added {
  readonly roundTrips: number;
  readonly address: string;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
