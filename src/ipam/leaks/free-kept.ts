/**
 * Frees addresses that wait for nobody any more. What was judged may be old: pod and owner are asked for again, and only
 * the very allocation that was judged is released. An ADD that has taken it meanwhile keeps it.
 */
import { podRecordKey } from "../../model/pod-record.ts";
import { type StatefulSetName, type StatefulSetSize, statefulSetKey } from "../../model/stateful-set.ts";
import type { Allocator } from "../allocator.ts";
import { guarded } from "../request.ts";
import type { LiveObjects } from "./live-view.ts";
import {
  type EndedAddress,
  judgeWaiting,
  type KeptAllocation,
  machineOfKept,
  statefulSetOfKept,
} from "./waiting-addresses.ts";

/** StatefulSets as the orchestrator's API has them now. */
export interface LiveStatefulSets {
  /** `undefined` if it does not exist. */
  readonly read: (name: StatefulSetName) => Promise<StatefulSetSize | undefined>;
  /** Of all namespaces, by `statefulSetKey()`. */
  readonly list: () => Promise<ReadonlyMap<string, StatefulSetSize>>;
}

export interface FreeKeptMeans extends Pick<LiveObjects, "readPod" | "podsOfMachine"> {
  readonly allocator: Allocator;
  readonly statefulSets: Pick<LiveStatefulSets, "read">;
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
  const set = verdict.kind === "owner is gone" ? statefulSetOfKept(kept) : undefined;
  const size = set && ((await means.statefulSets.read(set)) ?? "absent");
  const view = {
    podAt: (key: string) => (name !== undefined && key === podRecordKey(name) ? record : undefined),
    podsOfMachine: () => ofMachine,
    statefulSet: () => size ?? "unknown",
  };
  if (judgeWaiting(allocation, view, means.now()).kind !== verdict.kind || !means.mayWrite()) return false;
  return releaseKept(allocation, means.allocator);
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

/** Those that these wait for, by `statefulSetKey()`; nothing is asked if they wait for none. */
export async function readStatefulSets(
  waiting: readonly KeptAllocation[],
  { read, list }: LiveStatefulSets,
): Promise<ReadonlyMap<string, StatefulSetSize>> {
  const wanted = new Map(
    waiting.flatMap(({ kept }) => {
      const set = statefulSetOfKept(kept);
      return set === undefined ? [] : [[statefulSetKey(set), set] as const];
    }),
  );
  if (wanted.size > MOST_SINGLE_READS) return list();
  const found = new Map<string, StatefulSetSize>();
  for (const [key, set] of wanted) {
    const size = await read(set);
    if (size !== undefined) found.set(key, size);
  }
  return found;
}
