/** What a watcher costs etcd: the CPU time of a real etcd for the same writes with more and more watchers, each on its own connection. */
import { podRecord } from "../../sim/scale/cluster-records.ts";
import type { FanOut, FanOutRound } from "../../sim/scale/measured.ts";
import { openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { startEtcd } from "../../test/support/etcd.ts";
import { processorMilliseconds } from "./processor-clock.ts";
import { memoryOf } from "./scale-node.ts";

/** `recordsPerWrite`: one, as ADDs of different nodes write, or many, as whoever cleans up after a lost zone may. */
export async function measureFanOut(
  watcherCounts: readonly number[],
  plans: readonly Pick<FanOutRound, "writes" | "recordsPerWrite">[],
): Promise<FanOut> {
  const rounds: FanOutRound[] = [];
  for (const plan of plans) {
    for (const watchers of watcherCounts) rounds.push(await measureRound(watchers, plan));
  }
  return { rounds };
}

async function measureRound(
  watchers: number,
  { writes, recordsPerWrite }: Pick<FanOutRound, "writes" | "recordsPerWrite">,
): Promise<FanOutRound> {
  const etcd = await startEtcd();
  const ending = new AbortController();
  const pid = etcd.members[0]?.pid ?? 0;
  const settings = { source: { kind: "endpoints", endpoints: etcd.endpoints } } as const;
  const writer = await openEtcd(settings, { upgradesToGrpc: true });
  const { revision } = await writer.read([]);
  const heard = new Array<number>(watchers).fill(0);
  const stores = await Promise.all(heard.map(() => openEtcd(settings, { upgradesToGrpc: true })));
  // The first request decides for gRPC.
  await Promise.all(stores.map((store) => store.read([])));
  await Bun.sleep(500);
  const loops = stores.map(async (store, index) => {
    for await (const event of store.watch(ENDPOINT.prefix(), revision, ending.signal)) {
      if (event.kind === "put") heard[index] = (heard[index] ?? 0) + 1;
    }
  });
  await Bun.sleep(500);
  const records = Array.from({ length: writes * recordsPerWrite }, (_, index) => podRecord(index, 0, index));
  const before = [processorMilliseconds(pid), process.cpuUsage()] as const;
  for (let first = 0; first < records.length; first += recordsPerWrite) {
    await writer.commit(records.slice(first, first + recordsPerWrite).map((record) => ({ kind: "put", ...record })));
  }
  while (heard.some((count) => count < records.length)) await Bun.sleep(5);
  const etcdMilliseconds = processorMilliseconds(pid) - before[0];
  const { user, system } = process.cpuUsage(before[1]);
  const etcdResidentBytes = memoryOf(pid).residentBytes;
  ending.abort();
  await Promise.all(loops);
  await Promise.all([writer, ...stores].map((store) => store.close()));
  await etcd.stop();
  const bytes = records.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  const found = {
    ...{ watchers, writes, recordsPerWrite, bytesPerEvent: bytes / records.length },
    ...{ etcdMilliseconds, etcdResidentBytes },
    clientMilliseconds: (user + system) / 1_000,
  };
  console.log(
    `${watchers} watchers: ${Math.round(etcdMilliseconds)} ms of etcd's CPU time for ${records.length} records`,
  );
  return found;
}
