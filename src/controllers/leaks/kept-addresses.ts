/**
 * Frees addresses that wait for a pod that does not come again (ipam/leaks/waiting-addresses.ts says which), with the same
 * care as leaked ones: looks over the grace period, a brake, and a last question before each write. StatefulSets are asked
 * for only while an address waits for a pod of one.
 */
import type { PluginError } from "../../errors.ts";
import { identityOf } from "../../ipam/leaks/allocations.ts";
import type { ClusterRecords } from "../../ipam/leaks/cluster-records.ts";
import { type FreeKeptMeans, freeKept, type LiveStatefulSets, readStatefulSets } from "../../ipam/leaks/free-kept.ts";
import type { LookTime } from "../../ipam/leaks/unused-since.ts";
import {
  describeKept,
  EndedKeeping,
  isWaitingAllocation,
  type KeptAllocation,
  keptIn,
  type OwnerView,
} from "../../ipam/leaks/waiting-addresses.ts";
import { lacksPermission } from "../../kube/require-ok.ts";
import type { PodRecord } from "../../model/pod-record.ts";
import { statefulSetKey } from "../../model/stateful-set.ts";
import type { Facts } from "../facts.ts";
import { Removals, type RemovalsMeans } from "../removals.ts";

export interface KeptMeans extends Omit<FreeKeptMeans, "statefulSets">, RemovalsMeans {
  readonly statefulSets: LiveStatefulSets;
  /** Unless another writes by now. */
  readonly each: (work: () => Promise<void>) => Promise<void>;
  readonly info: (message: string) => void;
}

/** All pods are looked through once, and only if an address waits for a virtual machine. */
function byMachine({ orchestrator }: Facts): OwnerView["podsOfMachine"] {
  let found: ReadonlyMap<string, readonly PodRecord[]> | undefined;
  return (wanted) => {
    const pods = () => Array.from(orchestrator.pods, ([, pod]) => pod).filter(({ machine }) => machine !== undefined);
    found ??= Map.groupBy(pods(), ({ namespace, machine }) => `${namespace}/${machine}`);
    return found.get(`${wanted.namespace}/${wanted.name}`) ?? [];
  };
}

export class KeptAddresses {
  private readonly ended = new EndedKeeping();
  private readonly removals: Removals;
  private count = 0;
  private hasWarned = false;

  constructor(private readonly means: KeptMeans) {
    this.removals = new Removals("addresses that wait for a pod", means);
  }

  /** How many have been freed. */
  get freed(): number {
    return this.count;
  }

  /** How many are not freed yet, because they are too many at once. */
  get held(): number {
    return this.removals.held;
  }

  async look({ blocks, view }: ClusterRecords, time: LookTime, facts: Facts): Promise<void> {
    const kept = blocks.flatMap(keptIn);
    const waiting = kept.filter(isWaitingAllocation);
    const statefulSet = await this.statefulSetsOf(waiting);
    const over = this.ended.look(
      waiting,
      { podAt: view.podAt, podsOfMachine: byMachine(facts), statefulSet },
      { ...time, date: this.means.now() },
    );
    const identities = over.map(({ allocation }) => identityOf(allocation));
    this.removals.look({ identities, total: kept.length, now: time.now }, facts);
    for (const each of over) {
      if (this.removals.isHeld(identityOf(each.allocation))) continue;
      await this.means.each(async () => {
        if (!(await freeKept(each, this.means))) return;
        this.count += 1;
        this.means.info(`freed ${describeKept(each.allocation)}: ${each.verdict.reason}`);
      });
    }
  }

  /** Without the permission nothing is known of them, and keepFor decides. */
  private async statefulSetsOf(waiting: readonly KeptAllocation[]): Promise<OwnerView["statefulSet"]> {
    try {
      const found = await readStatefulSets(waiting, this.means.statefulSets);
      return (name) => found.get(statefulSetKey(name)) ?? "absent";
    } catch (failure) {
      if (!lacksPermission(failure)) throw failure;
      this.warnOnce(failure);
      return () => "unknown";
    }
  }

  private warnOnce({ message, details }: PluginError): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    const consequence = "addresses kept for pods of StatefulSets are freed only when their keepFor is over";
    this.means.log(`leaks: ${consequence}: ${message}; ${details}`, "WARNING");
  }
}
