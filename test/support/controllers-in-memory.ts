/** The controllers on two datastores in memory: one with the orchestrator's objects, one of this product. */

import { RunningControllers } from "../../src/controllers/run-controllers.ts";
import { controllerSettings } from "../../src/controllers/settings.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import type { Leadership } from "../../src/kube/election/leadership.ts";
import { means } from "./ipam.ts";
import { pollUntil } from "./poll.ts";
import { storeAround } from "./wrapped-store.ts";

export interface StartPlan {
  readonly environment?: Readonly<Record<string, string>>;
  /** Instead of its own. */
  readonly store?: Datastore;
  /** They see no change after the first list of the orchestrator's objects; its API has the present ones. */
  readonly watches?: "silent";
  readonly isEtcd?: boolean;
}

const NONE = { read: async () => undefined, list: async () => new Map() };

export class ControllersInMemory {
  readonly orchestrator = openMemory();
  readonly store = openMemory();
  readonly logged: string[] = [];
  isLeader = true;
  elapsed: () => number = () => performance.now();
  private stop = new AbortController();
  private ended: Promise<void> | undefined;

  start({ environment = {}, store = this.store, isEtcd = true, watches }: StartPlan = {}): RunningControllers {
    const leadership: Leadership = {
      isLeading: () => this.isLeader,
      whenLeading: (signal) => pollUntil(() => this.isLeader || signal.aborted, "the leadership"),
    };
    this.stop = new AbortController();
    const controllers = new RunningControllers(controllerSettings(environment, undefined, { isEtcd }), {
      store,
      isEtcd,
      orchestrator: watches === "silent" ? withSilentWatches(this.orchestrator) : this.orchestrator,
      leadership,
      isAbsent: async () => true,
      readPod: async () => undefined,
      podsOfMachine: async () => [],
      owners: { statefulSets: NONE, machines: NONE, namespaces: NONE },
      allocator: openAllocator(store, means()),
      signal: this.stop.signal,
      elapsed: () => this.elapsed(),
      now: () => new Date(),
      wait: SYSTEM_CLOCK.wait,
      random: Math.random,
      log: (message) => this.logged.push(message),
    });
    this.ended = controllers.run();
    return controllers;
  }

  async end(): Promise<void> {
    this.stop.abort();
    await this.ended;
  }

  /** An object of the orchestrator is created or changed. */
  putObject(key: string, value: object): Promise<unknown> {
    return put(this.orchestrator, key, value);
  }

  deleteObject(key: string): Promise<void> {
    return remove(this.orchestrator, key);
  }

  /** Somebody else writes to the datastore. */
  putRecord(key: string, value: object): Promise<unknown> {
    return put(this.store, key, value);
  }

  deleteRecord(key: string): Promise<void> {
    return remove(this.store, key);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a record has the fields that its test expects.
  async record(key: string): Promise<any> {
    const text = (await this.store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
    return text === undefined ? undefined : JSON.parse(text);
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  until(key: string, holds: (record: any) => boolean): Promise<void> {
    return pollUntil(async () => holds(await this.record(key)), `the record at ${key}`);
  }

  async untilSynced(controllers: RunningControllers): Promise<void> {
    await pollUntil(() => controllers.states.every(({ isSynced }) => isSynced), "all controllers to be in sync");
  }
}

const withSilentWatches = (store: Datastore) =>
  storeAround(store, {
    watch: async function* (_prefix, revision, signal) {
      yield { kind: "bookmark", revision };
      await new Promise<void>((ended) => signal.addEventListener("abort", () => ended(), { once: true }));
    },
  });

const put = (store: Datastore, key: string, value: object) =>
  store.commit([{ kind: "put", key, value: JSON.stringify(value) }]);

async function remove(store: Datastore, key: string): Promise<void> {
  const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
  await store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }]);
}
