/**
 * Which addresses that wait for the pod they are kept for (model/kept-address.ts) are freed:
 *
 *   it has waited longer than its keepFor      unless the pod, or any of the virtual machine, exists and has no addresses yet.
 *                                              The clock of a node said since when; so it must have been seen to wait for
 *                                              as long, or for the grace period
 *   its StatefulSet, its virtual machine or    once that was so at every look of the grace period, unless the pod exists:
 *   its namespace does not exist, or its       an owner of the same name may be created again
 *   StatefulSet is too small for its ordinal
 *   64 of its namespace wait that have no      at once: the one that has waited the longest. Whoever may create pods could
 *   owner of these kinds                       keep all addresses of a pool, under ever new names
 *
 * What cannot be read keeps an address until its keepFor is over, and what an administrator has reserved is not counted.
 * Pure, but for what it remembers between two looks.
 */
import { type Address, formatAddress } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { endOfKeeping, type KeptAddress, keptOf, VIRTUAL_MACHINE } from "../../model/kept-address.ts";
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

/** What is said about an owner: what it is, or that it does not exist, or that nobody knows. */
export type Known<Owner> = Owner | "absent" | "unknown";
export type KnownStatefulSet = Known<StatefulSetSize>;

export interface KnownOwners {
  readonly statefulSet: (name: OwnerName) => KnownStatefulSet;
  readonly machine: (name: OwnerName) => Known<"exists">;
  readonly namespace: (name: OwnerName) => Known<"exists">;
}

/** Of a namespace: in the namespace "". */
export type OwnerName = StatefulSetName;

export const UNKNOWN_OWNERS: KnownOwners = {
  statefulSet: () => "unknown",
  machine: () => "unknown",
  namespace: () => "unknown",
};

export interface OwnerView extends KnownOwners {
  /** By `podRecordKey()`. */
  readonly podAt: (key: string) => PodRecord | undefined;
  /** Each has a name of its own. */
  readonly podsOfMachine: (name: OwnerName) => readonly PodRecord[];
}

/** "without owner": nothing is known that would create its pod again. */
export type WaitingVerdict = { readonly kind: "wanted" | "without owner" } | OverVerdict;

interface OverVerdict {
  readonly kind: "keepFor is over" | "owner is gone" | "too many";
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
export function statefulSetOfKept(kept: KeptAddress): OwnerName | undefined {
  return ownerOfKind(STATEFUL_SET, kept);
}

/** The virtual machine of the pod. */
export function machineOfKept(kept: KeptAddress): OwnerName | undefined {
  return ownerOfKind(VIRTUAL_MACHINE, kept);
}

/** What is reserved may be for one that does not exist yet: no node has used it. */
export function namespaceOfKept({ namespace, pod, lastNode }: KeptAddress): OwnerName | undefined {
  const isUsed = pod !== undefined && lastNode !== undefined;
  return isUsed && namespace !== undefined ? { namespace: "", name: namespace } : undefined;
}

function ownerOfKind(kind: string, { owner, namespace, pod }: KeptAddress): OwnerName | undefined {
  const name = owner?.startsWith(`${kind}/`) ? owner.slice(kind.length + 1) : "";
  return name === "" || namespace === undefined || pod === undefined ? undefined : { namespace, name };
}

export function judgeWaiting({ kept }: KeptAllocation, view: OwnerView, now: Date): WaitingVerdict {
  const pods = podsFor(kept, view).filter(({ finishedPhase }) => finishedPhase === undefined);
  const end = endOfKeeping(kept);
  const isComing = pods.some(({ addresses }) => addresses.length === 0);
  if (end !== undefined && end <= now && !isComing) {
    return { kind: "keepFor is over", reason: `it has waited since ${kept.since?.toISOString()}` };
  }
  if (pods.length > 0) return { kind: "wanted" };
  const why = whyGone(kept, view);
  if (why !== undefined) return { kind: "owner is gone", reason: why };
  const set = statefulSetOfKept(kept);
  const hasOwner =
    machineOfKept(kept) ?? (set && ordinalOfPod(set.name, kept.pod ?? "") !== undefined ? set : undefined);
  return { kind: hasOwner === undefined && namespaceOfKept(kept) !== undefined ? "without owner" : "wanted" };
}

function podsFor(kept: KeptAddress, { podAt, podsOfMachine }: OwnerView): readonly PodRecord[] {
  const { namespace, pod: name } = kept;
  const machine = machineOfKept(kept);
  if (machine !== undefined) return podsOfMachine(machine);
  const pod = namespace === undefined || name === undefined ? undefined : podAt(podRecordKey({ namespace, name }));
  return pod === undefined ? [] : [pod];
}

function whyGone(kept: KeptAddress, view: OwnerView): string | undefined {
  const [namespace, machine, set] = [namespaceOfKept(kept), machineOfKept(kept), statefulSetOfKept(kept)];
  if (namespace !== undefined && view.namespace(namespace) === "absent")
    return `namespace ${namespace.name} does not exist`;
  if (machine !== undefined && view.machine(machine) === "absent")
    return `${VIRTUAL_MACHINE} ${statefulSetKey(machine)} does not exist, and no VirtualMachine of its name`;
  const known = set === undefined ? "unknown" : view.statefulSet(set);
  if (set === undefined || known === "unknown") return undefined;
  const title = `${STATEFUL_SET} ${statefulSetKey(set)}`;
  if (known === "absent") return `${title} does not exist`;
  const ordinal = ordinalOfPod(set.name, kept.pod ?? "");
  if (ordinal === undefined || hasOrdinal(known, ordinal)) return undefined;
  return `${title} has ${known.replicas} replicas from ordinal ${known.start}`;
}

/** Of a namespace. */
const MOST_WITHOUT_OWNER = 64;

/** Those that have waited the longest. */
function tooMany(unowned: readonly KeptAllocation[]): readonly EndedAddress[] {
  const namespaces = Map.groupBy(unowned, ({ kept }) => kept.namespace ?? "");
  return [...namespaces].flatMap(([namespace, all]) => {
    const reason = `${all.length} addresses wait for pods of namespace ${namespace} without a StatefulSet or a virtual machine, at most ${MOST_WITHOUT_OWNER} may, and it has waited the longest`;
    const since = ({ kept }: KeptAllocation) => kept.since?.getTime() ?? 0;
    const oldest = all.toSorted((one, other) => since(one) - since(other));
    return oldest
      .slice(0, Math.max(0, all.length - MOST_WITHOUT_OWNER))
      .map((allocation) => ({ allocation, verdict: { kind: "too many", reason } as const }));
  });
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
    const judged = waiting.map((allocation) => ({ allocation, verdict: judgeWaiting(allocation, view, date) }));
    const found = judged.flatMap(({ allocation, verdict }, index): EndedAddress[] => {
      if (verdict.kind === "keepFor is over" && !isSeenLong(allocation, index)) return [];
      return "reason" in verdict ? [{ allocation, verdict }] : [];
    });
    const isUnowned = ({ kind }: WaitingVerdict) =>
      kind === "without owner" || (kind === "owner is gone" && graceMilliseconds === 0);
    const unowned = judged.filter(({ verdict }) => isUnowned(verdict)).map(({ allocation }) => allocation);
    const gone = found.filter(({ verdict }) => verdict.kind === "owner is gone");
    const ages = this.since.look(
      gone.map(({ allocation }) => identityOf(allocation)),
      times,
    );
    const isLong = (index: number) => graceMilliseconds > 0 && (ages[index] ?? 0) >= graceMilliseconds;
    const young = new Set(gone.filter((_, index) => !isLong(index)));
    return [...found.filter((each) => !young.has(each)), ...tooMany(unowned)];
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
