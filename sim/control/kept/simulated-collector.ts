/** The leak collector of the controllers, with copies of the cluster that lag behind, in a process that is killed and started again. */
import { ORCHESTRATOR_KINDS, type Replicas, STORED_KINDS } from "../../../src/controllers/facts.ts";
import { LeakCollector } from "../../../src/controllers/leaks/collector.ts";
import type { Datastore } from "../../../src/datastore/datastore.ts";
import { openMemory } from "../../../src/datastore/memory/memory.ts";
import { PluginError } from "../../../src/errors.ts";
import { openAllocator } from "../../../src/ipam/allocator.ts";
import { podRecordKey } from "../../../src/model/pod-record.ts";
import { statefulSetKey } from "../../../src/model/stateful-set.ts";
import { nodeChange, seed } from "../../../test/support/ipam.ts";
import { asReplica, snapshotOf } from "../../../test/support/leaking-cluster.ts";
import { RequestFailed } from "../../faults/network.ts";
import { ProcessKilled, SimulatedProcess } from "../../schedule/process.ts";
import type { RuntimeMeans } from "./runtime.ts";

export const CONTROLLERS = "controllers";
export const GRACE_MILLISECONDS = 4 * 60_000;
const ANSWER_MILLISECONDS = 10_000;

export interface CollectorSite extends RuntimeMeans {
  readonly isEtcd: boolean;
  readonly onCrash: (what: string) => void;
}

export class SimulatedCollector {
  /** Kept addresses that were freed. */
  freed = 0;
  private seen: { readonly orchestrator: unknown; readonly stored: unknown } | undefined;
  private process: SimulatedProcess | undefined;
  private starts = 0;

  constructor(private readonly site: CollectorSite) {}

  /** Its copies catch up with what is now. */
  async catchUp(): Promise<void> {
    const { workloads, datastore } = this.site;
    const orchestrator = openMemory();
    for (const { key, namespace, name } of workloads.pods.values()) {
      const record = workloads.recordOf(key);
      if (record === undefined) continue;
      const value = JSON.stringify(record);
      await orchestrator.commit([{ kind: "put", key: podRecordKey({ namespace, name }), value }]);
    }
    for (const node of workloads.nodes) await seed(orchestrator, nodeChange(node));
    const stored = await snapshotOf(datastore.user, STORED_KINDS);
    this.seen = { orchestrator: await snapshotOf(orchestrator, ORCHESTRATOR_KINDS), stored };
  }

  start(): void {
    if (this.process?.isAlive || !this.site.hasControllers) return;
    const { scheduler, random, clockErrors, datastore, workloads, isEtcd } = this.site;
    this.starts += 1;
    const name = `${CONTROLLERS} ${this.starts}`;
    const process = new SimulatedProcess(name, scheduler, random.fork(name), clockErrors.get(CONTROLLERS));
    this.process = process;
    const { now, elapsed, wait, signal } = process;
    const store = datastore.connect(process, CONTROLLERS);
    const collector = new LeakCollector({
      ...{ store, now, elapsed, wait, signal, isEtcd },
      allocator: openAllocator(store, { now, wait, random: () => process.random.next() }),
      replicas: {
        orchestrator: asReplica(() => this.seen?.orchestrator),
        stored: asReplica(() => this.seen?.stored),
      } as Replicas,
      leadership: { isLeading: () => true, whenLeading: async () => {} },
      readPod: ({ namespace, name: pod }) => this.ask(process, () => workloads.recordOf(`${namespace}/${pod}`)),
      podsOfMachine: ({ namespace, name: machine }) =>
        this.ask(process, () => workloads.recordsOf(`${namespace}/${machine}`)),
      isAbsent: (path) => this.ask(process, () => !workloads.nodes.has(path.slice(path.lastIndexOf("/") + 1))),
      owners: {
        statefulSets: {
          read: (set) => this.ask(process, () => workloads.sizes.get(statefulSetKey(set))),
          list: () => this.ask(process, () => new Map(workloads.sizes)),
        },
        machines: {
          read: (machine) =>
            this.ask(process, () => (workloads.exists(statefulSetKey(machine)) ? "exists" : undefined)),
          list: async () => new Map(),
        },
        namespaces: { read: async () => "exists", list: async () => new Map() },
      },
      graceMilliseconds: GRACE_MILLISECONDS,
      log: () => {},
    });
    void this.run(collector, process, store);
  }

  kill(): void {
    this.process?.kill();
  }

  /** It dies in the middle of a look. */
  killSoon(effects: number): void {
    this.process?.killAfter(effects);
  }

  private async run(collector: LeakCollector, process: SimulatedProcess, store: Datastore): Promise<void> {
    // It has lists of the datastore before it looks, and has heard its time with them.
    while (!(await hasListed(store))) await process.wait(ANSWER_MILLISECONDS);
    while (process.isAlive) {
      const before = collector.state.freedKept;
      try {
        await collector.collect();
      } catch (failure) {
        const isExpected =
          failure instanceof PluginError || failure instanceof RequestFailed || failure instanceof ProcessKilled;
        if (!isExpected) this.site.onCrash(`the collector has crashed: ${failure}`);
      }
      this.freed += collector.state.freedKept - before;
      await process.wait(GRACE_MILLISECONDS / 2);
    }
  }

  /** The orchestrator's API, which answers late, or not at all. */
  private ask<Answer>(process: SimulatedProcess, answer: () => Answer): Promise<Answer> {
    return this.site.network.request(process, CONTROLLERS, { isUp: () => true }, answer, ANSWER_MILLISECONDS);
  }
}

async function hasListed(store: Datastore): Promise<boolean> {
  return store.read([{ kind: "prefix", prefix: STORED_KINDS.pools.prefix }]).then(
    () => true,
    () => false,
  );
}
