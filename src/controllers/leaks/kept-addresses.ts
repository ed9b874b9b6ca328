/**
 * Frees addresses that wait for a pod that does not come again (ipam/leaks/waiting-addresses.ts says which), with the same
 * care as leaked ones: looks over the grace period, a brake, and a last question before each write. Owners are asked
 * for only while an address waits for a pod of one.
 */
import { identityOf } from "../../ipam/leaks/allocations.ts";
import type { ClusterRecords } from "../../ipam/leaks/cluster-records.ts";
import { type FreeKeptMeans, freeKept, readOwners } from "../../ipam/leaks/free-kept.ts";
import type { LookTime } from "../../ipam/leaks/unused-since.ts";
import {
  describeKept,
  EndedKeeping,
  isWaitingAllocation,
  type KeptAllocation,
  type KnownOwners,
  keptIn,
  type OwnerView,
} from "../../ipam/leaks/waiting-addresses.ts";
import type { PodRecord } from "../../model/pod-record.ts";
import type { Facts } from "../facts.ts";
import { Removals, type RemovalsMeans } from "../removals.ts";

export interface KeptMeans extends FreeKeptMeans, RemovalsMeans {
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
  private readonly warned = new Set<string>();

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
    const owners = await this.ownersOf(waiting);
    const over = this.ended.look(
      waiting,
      { podAt: view.podAt, podsOfMachine: byMachine(facts), ...owners },
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

  /** Without the permission nothing is known of them, and keepFor decides: logged once for each. */
  private async ownersOf(waiting: readonly KeptAllocation[]): Promise<KnownOwners> {
    const { known, refusals } = await readOwners(waiting, this.means.owners);
    for (const { details, message } of refusals.filter((each) => !this.warned.has(each.details))) {
      this.warned.add(details);
      const consequence =
        "addresses kept for pods whose owners cannot be read are freed only when their keepFor is over";
      this.means.log(`leaks: ${consequence}: ${message}; ${details}`, "WARNING");
    }
    return known;
  }
}
