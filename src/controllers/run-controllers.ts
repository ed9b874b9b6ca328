/**
 * Runs the controllers that the settings enable:
 *
 *   settings ──> controllers of this datastore ──> two replicas, of the kinds that they follow
 *                                              └─> each with its own queue
 */
import type { Datastore } from "../datastore/datastore.ts";
import { startReplica } from "../datastore/replica.ts";
import type { Allocator } from "../ipam/allocator.ts";
import { datastoreTime } from "../ipam/allocator-means.ts";
import { respectingLock } from "../ipam/respecting-lock.ts";
import type { Leadership } from "../kube/election/leadership.ts";
import { millisecondsOf } from "../model/duration.ts";
import { chooseControllers } from "./choose-controllers.ts";
import type { Controller } from "./controller.ts";
import { factsOf, followedKinds, ORCHESTRATOR_KINDS, type Replicas, STORED_KINDS } from "./facts.ts";
import { type IpamUsage, ipamUsage } from "./ipam-usage.ts";
import { type CollectorMeans, type CollectorState, followedByCollector, LeakCollector } from "./leaks/collector.ts";
import { recordsIn } from "./leaks/records.ts";
import { type ControllerMeans, type ControllerState, RunningController } from "./run-controller.ts";
import type { ControllerSettings } from "./settings.ts";

export interface ControllersMeans
  extends Omit<ControllerMeans, "replicas" | "periodMilliseconds">,
    Pick<CollectorMeans, "readPod" | "podsOfMachine" | "isAbsent" | "owners"> {
  /** The product's datastore. */
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly isEtcd: boolean;
  /** The orchestrator's objects, as `orchestratorMapping()` converts them. */
  readonly orchestrator: Datastore;
  readonly leadership: Leadership;
  /** Spreads retries: a number from 0 up to 1. */
  readonly random: () => number;
}

export class RunningControllers {
  private readonly running: readonly RunningController[];
  private readonly collector: LeakCollector | undefined;
  private readonly replicas: Replicas;
  private readonly datastoreNow: () => Date;

  constructor(settings: ControllerSettings, means: ControllersMeans) {
    const { controllers, idle } = chooseControllers(settings, means.isEtcd);
    if (idle.length > 0) {
      const reason = "with the Kubernetes API as the datastore, policies, profiles and pods are read directly";
      means.log(`The controllers ${idle.join(", ")} are idle: ${reason}`, "INFO");
    }
    const { node } = settings.running.controllers;
    const followers = controllers.map(({ controller }) => controller.follows);
    const all = node === undefined ? followers : [...followers, followedByCollector(means.isEtcd)];
    this.replicas = startReplicas(all, means);
    // An upgrade compares what it copies while the datastore is locked, and must be the only one that writes.
    this.datastoreNow = () => datastoreTime(means.store, means);
    const common = { ...means, store: respectingLock(means.store), replicas: this.replicas };
    this.running = controllers.map(({ controller, period, writesStatus = false }) => {
      const store = writesStatus ? means.orchestrator : common.store;
      return new RunningController(controller, { ...common, store, periodMilliseconds: millisecondsOf(period) });
    });
    this.collector = node && new LeakCollector({ ...common, graceMilliseconds: millisecondsOf(node.leakGracePeriod) });
  }

  get states(): readonly ControllerState[] {
    return this.running.map(({ state }) => state);
  }

  /** `undefined` if it does not run. */
  get collectorState(): CollectorState | undefined {
    return this.collector?.state;
  }

  /** `undefined` until the blocks are known, or if nobody follows them. */
  get usage(): IpamUsage | undefined {
    const facts = this.collector === undefined ? undefined : factsOf(this.replicas);
    if (facts === undefined) return undefined;
    const { pools, blocks } = recordsIn(facts);
    return ipamUsage(pools, blocks, this.datastoreNow());
  }

  /** Resolves when the signal of the means is aborted and nothing is left open. */
  async run(): Promise<void> {
    const { orchestrator, stored } = this.replicas;
    const loops = this.running.map((each) => each.run());
    await Promise.all([...loops, this.collector?.run(), orchestrator.ended, stored.ended]);
  }
}

function startReplicas(followers: readonly Controller["follows"][], means: ControllersMeans): Replicas {
  const { store, orchestrator, isEtcd, signal, log, elapsed, wait, random } = means;
  const objects = new Set(followers.flatMap((follows) => follows.orchestrator));
  const records = new Set(followers.flatMap((follows) => follows.stored));
  const report = ({ message }: Error) => log(message, "WARNING");
  const common = { signal, clock: { now: elapsed, wait }, random, report };
  return {
    orchestrator: startReplica(orchestrator, followedKinds(ORCHESTRATOR_KINDS, objects), {
      ...common,
      watches: "per kind",
    }),
    stored: startReplica(store, followedKinds(STORED_KINDS, records), {
      ...common,
      watches: isEtcd ? "together" : "per kind",
    }),
  };
}
