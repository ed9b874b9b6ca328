/**
 * Frees addresses that wait for nobody any more. What was judged may be old: pod and owner are asked for again, and only
 * the very allocation that was judged is released. An ADD that has taken it meanwhile keeps it.
 */
import type { PluginError } from "../../errors.ts";
import { lacksPermission } from "../../kube/require-ok.ts";
import { podRecordKey } from "../../model/pod-record.ts";
import { type StatefulSetSize, statefulSetKey } from "../../model/stateful-set.ts";
import type { Allocator } from "../allocator.ts";
import { guarded } from "../request.ts";
import type { LiveObjects } from "./live-view.ts";
import {
  type EndedAddress,
  judgeWaiting,
  type KeptAllocation,
  type Known,
  type KnownOwners,
  machineOfKept,
  namespaceOfKept,
  type OwnerName,
  statefulSetOfKept,
  UNKNOWN_OWNERS,
} from "./waiting-addresses.ts";

/** Owners of one kind as the orchestrator's API has them now. */
export interface LiveKind<Owner> {
  /** `undefined` if it does not exist. */
  readonly read: (name: OwnerName) => Promise<Owner | undefined>;
  /** Of all namespaces, by `statefulSetKey()`. */
  readonly list: () => Promise<ReadonlyMap<string, Owner>>;
}

export interface LiveOwners {
  readonly statefulSets: LiveKind<StatefulSetSize>;
  readonly machines: LiveKind<"exists">;
  readonly namespaces: LiveKind<"exists">;
}

export interface FreeKeptMeans extends Pick<LiveObjects, "readPod" | "podsOfMachine"> {
  readonly allocator: Allocator;
  readonly owners: LiveOwners;
  readonly now: () => Date;
  /** Asked before the write. */
  readonly mayWrite: () => boolean;
}

/** Whether it was freed. */
export async function freeKept({ allocation, verdict }: EndedAddress, means: FreeKeptMeans): Promise<boolean> {
  const { kept } = allocation;
  const { namespace, pod } = kept;
  const machine = machineOfKept(kept);
  const isOfPod = namespace !== undefined && pod !== undefined;
  const name = isOfPod && machine === undefined ? { namespace, name: pod } : undefined;
  const record = name && (await means.readPod(name));
  const ofMachine = machine === undefined ? [] : await means.podsOfMachine(machine);
  const owners =
    verdict.kind === "keepFor is over" ? UNKNOWN_OWNERS : (await readOwners([allocation], means.owners)).known;
  const podAt = (key: string) => (name !== undefined && key === podRecordKey(name) ? record : undefined);
  const { kind } = judgeWaiting(allocation, { podAt, podsOfMachine: () => ofMachine, ...owners }, means.now());
  const isOver = verdict.kind === "too many" ? kind !== "wanted" : kind === verdict.kind;
  return isOver && means.mayWrite() ? releaseKept(allocation, means.allocator) : false;
}

/** `false` if it is another allocation by now. */
export async function releaseKept(
  allocation: KeptAllocation,
  allocator: Pick<Allocator, "releaseAddresses">,
): Promise<boolean> {
  const { released } = await allocator.releaseAddresses([{ ...guarded(allocation), how: "for good" }]);
  return released.length > 0;
}

/** More are listed with one request, or with a few. */
const MOST_SINGLE_READS = 20;

/** Those that these wait for; nothing is asked if they wait for none. Of a kind that may not be read nothing is known. */
export async function readOwners(
  waiting: readonly KeptAllocation[],
  { statefulSets, machines, namespaces }: LiveOwners,
): Promise<{ readonly known: KnownOwners; readonly refusals: readonly PluginError[] }> {
  const refusals: PluginError[] = [];
  const known = async <Owner>(
    nameOf: (kept: KeptAllocation["kept"]) => OwnerName | undefined,
    live: LiveKind<Owner>,
  ): Promise<(name: OwnerName) => Known<Owner>> => {
    try {
      const found = await readKind(
        waiting.flatMap(({ kept }) => nameOf(kept) ?? []),
        live,
      );
      return (name) => found.get(statefulSetKey(name)) ?? "absent";
    } catch (failure) {
      if (!lacksPermission(failure)) throw failure;
      refusals.push(failure);
      return () => "unknown";
    }
  };
  const [statefulSet, machine, namespace] = [
    await known(statefulSetOfKept, statefulSets),
    await known(machineOfKept, machines),
    await known(namespaceOfKept, namespaces),
  ];
  return { known: { statefulSet, machine, namespace }, refusals };
}

async function readKind<Owner>(
  names: readonly OwnerName[],
  { read, list }: LiveKind<Owner>,
): Promise<ReadonlyMap<string, Owner>> {
  const wanted = new Map(names.map((name) => [statefulSetKey(name), name]));
  if (wanted.size > MOST_SINGLE_READS) return list();
  const found = new Map<string, Owner>();
  for (const [key, name] of wanted) {
    const owner = await read(name);
    if (owner !== undefined) found.set(key, owner);
  }
  return found;
}
