/**
 * Which addresses that wait for the pod they are kept for (model/kept-address.ts) are freed:
 *
 *   it has waited longer than its keepFor      unless the pod, or any of the virtual machine, exists and has no addresses yet.
 *                                              The clock of a node said since when; so it must have been seen to wait for
 *                                              as long, or for the grace period
 *   its StatefulSet does not exist, or is      once that was so at every look of the grace period, unless the pod exists:
 *   too small for the pod's ordinal            a StatefulSet of the same name may be created again
 *
 * What is not known (a StatefulSet that cannot be read, a name without an ordinal, another kind of owner) keeps an address
 * until its keepFor is over. Pure, but for what it remembers between two looks.
 */
import { type Address, formatAddress } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { endOfKeeping, type KeptAddress, keptOf, VIRTUAL_MACHINE } from "../../model/kept-address.ts";
import type { ResourceName } from "../../model/keys.ts";
import { type PodRecord, podRecordKey } from "../../model/pod-record.ts";
import {
  hasOrdinal,
  ordinalOfPod,
  STATEFUL_SET,
  type StatefulSetName,
  type StatefulSetSize,
  statefulSetKey,
} from "../../model/stateful-set.ts";
import { addressAt, attributesOf } from "../block.ts";
import { identityOf } from "./allocations.ts";
import { type LookTime, UnusedSince } from "./unused-since.ts";

export interface KeptAllocation {
  readonly address: Address;
  readonly handle: string;
  readonly sequenceNumber: bigint | undefined;
  readonly kept: KeptAddress;
}

/** What is said about a StatefulSet: its size, or that it does not exist, or that nobody knows. */
export type KnownStatefulSet = StatefulSetSize | "absent" | "unknown";

export interface OwnerView {
  /** By `podRecordKey()`. */
  readonly podAt: (key: string) => PodRecord | undefined;
  /** Each has a name of its own. */
  readonly podsOfMachine: (name: ResourceName) => readonly PodRecord[];
  readonly statefulSet: (name: StatefulSetName) => KnownStatefulSet;
}

export type WaitingVerdict = { readonly kind: "wanted" } | OverVerdict;

interface OverVerdict {
  readonly kind: "keepFor is over" | "owner is gone";
  readonly reason: string;
}

export interface EndedAddress {
  readonly allocation: KeptAllocation;
  readonly verdict: OverVerdict;
}

/** In use and waiting. */
export function keptIn(block: IPAMBlock): readonly KeptAllocation[] {
  return [...block.allocations.keys()].flatMap((ordinal) => {
    const kept = keptOf(attributesOf(block, ordinal));
    if (kept === undefined) return [];
    const sequenceNumber = block.sequenceNumberForAllocation[ordinal];
    return { address: addressAt(block, ordinal), handle: kept.handle, sequenceNumber, kept };
  });
}

export function isWaitingAllocation({ kept: { user } }: KeptAllocation): boolean {
  return user === undefined;
}

/** The StatefulSet that makes the pod; `undefined` if something else does, or nothing. */
export function statefulSetOfKept({ owner, namespace, pod }: KeptAddress): StatefulSetName | undefined {
  const name = owner?.startsWith(`${STATEFUL_SET}/`) ? owner.slice(STATEFUL_SET.length + 1) : "";
  return name === "" || namespace === undefined || pod === undefined ? undefined : { namespace, name };
}

/** The virtual machine whose pods get the address; `undefined` if it is kept for another owner. */
export function machineOfKept({ owner, namespace }: KeptAddress): ResourceName | undefined {
  const name = owner?.startsWith(`${VIRTUAL_MACHINE}/`) ? owner.slice(VIRTUAL_MACHINE.length + 1) : "";
  return name === "" || namespace === undefined ? undefined : { namespace, name };
}

export function judgeWaiting({ kept }: KeptAllocation, view: OwnerView, now: Date): WaitingVerdict {
  const pods = podsFor(kept, view).filter(({ finishedPhase }) => finishedPhase === undefined);
  const end = endOfKeeping(kept);
  const isComing = pods.some(({ addresses }) => addresses.length === 0);
  if (end !== undefined && end <= now && !isComing) {
    return { kind: "keepFor is over", reason: `it has waited since ${kept.since?.toISOString()}` };
  }
  const set = statefulSetOfKept(kept);
  if (set === undefined || pods.length > 0) return { kind: "wanted" };
  const why = whyGone(set, kept.pod ?? "", view.statefulSet(set));
  return why === undefined ? { kind: "wanted" } : { kind: "owner is gone", reason: why };
}

function podsFor(kept: KeptAddress, { podAt, podsOfMachine }: OwnerView): readonly PodRecord[] {
  const { namespace, pod: name } = kept;
  const machine = machineOfKept(kept);
  if (machine !== undefined) return podsOfMachine(machine);
  const pod = namespace === undefined || name === undefined ? undefined : podAt(podRecordKey({ namespace, name }));
  return pod === undefined ? [] : [pod];
}

function whyGone(set: StatefulSetName, pod: string, known: KnownStatefulSet): string | undefined {
  const title = `${STATEFUL_SET} ${statefulSetKey(set)}`;
  if (known === "unknown") return undefined;
  if (known === "absent") return `${title} does not exist`;
  const ordinal = ordinalOfPod(set.name, pod);
  if (ordinal === undefined || hasOrdinal(known, ordinal)) return undefined;
  return `${title} has ${known.replicas} replicas from ordinal ${known.start}`;
}

export class EndedKeeping {
  private readonly since = new UnusedSince();
  private readonly seen = new UnusedSince();

  /** Those to free. `graceMilliseconds`: 0 if the owner is never taken for gone. */
  look(
    waiting: readonly KeptAllocation[],
    view: OwnerView,
    { now, ...time }: LookTime & { readonly date: Date },
  ): readonly EndedAddress[] {
    const { graceMilliseconds, date } = time;
    const times = { now, graceMilliseconds };
    const seen = this.seen.look(waiting.map(identityOf), times);
    const isSeenLong = ({ kept }: KeptAllocation, index: number) =>
      (seen[index] ?? 0) >= Math.min(graceMilliseconds, kept.keepForSeconds * 1000);
    const found = waiting.flatMap((allocation, index): EndedAddress[] => {
      const verdict = judgeWaiting(allocation, view, date);
      if (verdict.kind === "keepFor is over" && !isSeenLong(allocation, index)) return [];
      return verdict.kind === "wanted" ? [] : [{ allocation, verdict }];
    });
    const gone = found.filter(({ verdict }) => verdict.kind === "owner is gone");
    const ages = this.since.look(
      gone.map(({ allocation }) => identityOf(allocation)),
      times,
    );
    const isLong = (index: number) => graceMilliseconds > 0 && (ages[index] ?? 0) >= graceMilliseconds;
    const young = new Set(gone.filter((_, index) => !isLong(index)));
    return found.filter((each) => !young.has(each));
  }
}

/** `10.0.0.5 (kept for pod shop/db-0)` */
export function describeKept({ address, kept }: Pick<KeptAllocation, "address" | "kept">): string {
  return `${formatAddress(address)} (kept for ${ownerOfKept(kept)})`;
}

/** `pod shop/db-0`, `VirtualMachineInstance shop/desktop`, `container "web" of node n1` */
export function ownerOfKept({ namespace, pod, owner, containerName, user, lastNode }: KeptAddress): string {
  if (pod === undefined) return `container "${containerName ?? ""}" of node ${user?.node ?? lastNode ?? "(unknown)"}`;
  const place = `${namespace ?? ""}/`;
  return owner?.startsWith(`${VIRTUAL_MACHINE}/`)
    ? `${VIRTUAL_MACHINE} ${place}${owner.slice(VIRTUAL_MACHINE.length + 1)}`
    : `pod ${place}${pod}`;
}
