import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address } from "../../../test/support/ipam.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { keptOf } from "../../model/kept-address.ts";
import { podRecordOf } from "../../model/pod-record.ts";
import type { StatefulSetSize } from "../../model/stateful-set.ts";
import {
  EndedKeeping,
  judgeWaiting,
  type KeptAllocation,
  type KnownStatefulSet,
  type OwnerView,
} from "./waiting-addresses.ts";

const SINCE = Date.parse("2026-01-02T03:04:05Z");
const MINUTE = 60_000;
const GRACE = 15 * MINUTE;

type Secondary = Readonly<Record<string, string | undefined>>;

function waiting(more: Secondary = {}): KeptAllocation {
  const secondary = { pod: "db-3", namespace: "shop", kept: "3600", owner: "StatefulSet/db", lastNode: "n1", ...more };
  const kept = keptOf({ handleId: "keep-1", secondary: { timestamp: new Date(SINCE).toISOString(), ...secondary } });
  if (kept === undefined) throw new Error("it is not kept");
  return { address: address("10.0.0.5"), handle: "keep-1", sequenceNumber: 1n, kept };
}

type PodState = "none" | "starting" | "running" | "finished";

function podOf(state: PodState) {
  if (state === "none") return undefined;
  return podRecordOf({
    metadata: { namespace: "shop", name: "db-3" },
    spec: { nodeName: "n1" },
    status: {
      ...(state === "running" ? { podIPs: [{ ip: "10.0.0.9" }] } : {}),
      ...(state === "finished" ? { phase: "Succeeded" } : {}),
    },
  });
}

const viewOf = (statefulSet: KnownStatefulSet, pod: PodState = "none"): OwnerView => ({
  podAt: (key: string) => (key.endsWith("/shop/db-3") ? podOf(pod) : undefined),
  podsOfMachine: ({ name }: { readonly name: string }) =>
    (name === "desktop" ? [podOf("finished"), podOf(pod)] : []).flatMap((each) => each ?? []),
  statefulSet: () => statefulSet,
  machine: () => "exists",
  namespace: () => "exists",
});

const minutes = (count: number) => new Date(SINCE + count * MINUTE);

describe("an address that waits is", () => {
  const five = { start: 0, replicas: 5 };
  test.each<[string, KeptAllocation, KnownStatefulSet, PodState, number]>([
    ["wanted", waiting(), five, "none", 59],
    ["keepFor is over", waiting(), five, "none", 60],
    ["wanted", waiting(), five, "starting", 600],
    ["keepFor is over", waiting(), five, "running", 60],
    ["keepFor is over", waiting(), five, "finished", 60],
    ["owner is gone", waiting(), "absent", "none", 1],
    ["wanted", waiting(), "absent", "running", 1],
    ["owner is gone", waiting(), "absent", "finished", 1],
    ["wanted", waiting(), "unknown", "none", 1],
    ["keepFor is over", waiting(), "unknown", "none", 60],
    ["owner is gone", waiting(), { start: 0, replicas: 3 }, "none", 1],
    ["wanted", waiting(), { start: 3, replicas: 1 }, "none", 1],
    ["owner is gone", waiting(), { start: 4, replicas: 5 }, "none", 1],
    ["owner is gone", waiting(), { start: 0, replicas: 0 }, "none", 1],
    // Names that its controller does not give.
    ["without owner", waiting({ pod: "db-03" }), { start: 0, replicas: 0 }, "none", 1],
    ["without owner", waiting({ pod: "other-3" }), { start: 0, replicas: 0 }, "none", 1],
    ["without owner", waiting({ owner: "StatefulSet.apps.example.org/db" }), "absent", "none", 1],
    ["without owner", waiting({ owner: "Workflow/build" }), "unknown", "none", 1],
    ["wanted", waiting({ owner: "Workflow/build" }), "unknown", "starting", 1],
    ["keepFor is over", waiting({ owner: "Workflow/build" }), "unknown", "none", 60],
    ["wanted", waiting({ owner: "VirtualMachineInstance/db" }), "absent", "none", 1],
    ["keepFor is over", waiting({ owner: "VirtualMachineInstance/db" }), "absent", "none", 60],
    // Its pod has another name each time.
    ["wanted", waiting({ owner: "VirtualMachineInstance/desktop", pod: "launcher-a" }), "absent", "starting", 600],
    ["keepFor is over", waiting({ owner: "VirtualMachineInstance/desktop" }), "absent", "running", 60],
    ["keepFor is over", waiting({ owner: "VirtualMachineInstance/desktop" }), "absent", "finished", 60],
    // Nobody has used it: an administrator has reserved it.
    ["wanted", waiting({ owner: "", lastNode: undefined }), "unknown", "none", 1],
    ["wanted", waiting({ timestamp: "?" }), five, "none", 6000],
  ])("%s: %#", (kind, allocation, set, pod, after) => {
    expect(judgeWaiting(allocation, viewOf(set, pod), minutes(after)).kind).toBe(kind as never);
  });
});

test("is not wanted if its virtual machine or its namespace does not exist, in whatever time", () => {
  const owned = (owner: string, lastNode?: string) => waiting({ owner, kept: "0", lastNode });
  const kindOf = (allocation: KeptAllocation, view: Partial<OwnerView>, pod: PodState = "none") =>
    judgeWaiting(allocation, { ...viewOf("unknown", pod), ...view }, minutes(1e6)).kind;
  const machine = owned("VirtualMachineInstance/desktop", "n1");
  const without: Partial<OwnerView> = { machine: () => "absent" };
  const nowhere: Partial<OwnerView> = { namespace: () => "absent" };

  expect([kindOf(machine, without), kindOf(machine, nowhere)]).toEqual(["owner is gone", "owner is gone"]);
  expect([kindOf(machine, {}), kindOf(machine, { machine: () => "unknown" })]).toEqual(["wanted", "wanted"]);
  expect(kindOf(machine, without, "starting")).toBe("wanted");
  expect(kindOf(owned("Workflow/build", "n1"), nowhere)).toBe("owner is gone");
  // Reserved for a namespace that does not exist yet.
  expect(kindOf(owned("", undefined), nowhere)).toBe("wanted");
});

describe("EndedKeeping", () => {
  test("lets 64 of a namespace wait that have no owner, and ends those that have waited the longest", () => {
    const many = (namespace: string, count: number, more: Secondary = {}) =>
      Array.from({ length: count }, (_, index) =>
        waiting({
          ...{ namespace, pod: `p-${index}`, owner: "", kept: "0" },
          ...{ timestamp: new Date(SINCE + ((index * 11) % count) * 1000).toISOString(), ...more },
        }),
      );
    const all = [
      ...many("red", 70),
      ...many("blue", 64),
      ...many("sets", 70, { owner: "StatefulSet/p" }),
      ...many("reserved", 70, { lastNode: undefined }),
    ];
    const ended = (graceMilliseconds: number, set: KnownStatefulSet) =>
      new EndedKeeping()
        .look(all, viewOf(set), { now: 0, graceMilliseconds, date: minutes(10) })
        .map(({ allocation: { kept }, verdict }) => [kept.namespace, kept.since?.getTime(), verdict.kind]);
    const oldest = (namespace: string) =>
      [0, 1, 2, 3, 4, 5].map((each) => [namespace, SINCE + each * 1000, "too many"]);

    expect(ended(GRACE, "absent")).toEqual(oldest("red"));
    expect(ended(0, { start: 0, replicas: 100 })).toEqual(oldest("red"));
    expect(ended(0, "absent")).toEqual([...oldest("red"), ...oldest("sets")]);
  });

  const look = (ended: EndedKeeping, minute: number, set: KnownStatefulSet, graceMilliseconds = GRACE) =>
    ended.look([waiting()], viewOf(set), {
      ...{ now: minute * MINUTE, graceMilliseconds },
      date: minutes(minute),
    }).length;

  test("frees one without an owner once that has been so for the grace period", () => {
    const ended = new EndedKeeping();

    expect([0, 7, 14, 15].map((minute) => look(ended, minute, "absent"))).toEqual([0, 0, 0, 1]);
  });

  test("begins again when the StatefulSet is there again, is not known, or nobody has looked", () => {
    for (const between of [{ start: 0, replicas: 5 }, "unknown"] as const) {
      const ended = new EndedKeeping();
      look(ended, 0, "absent");
      look(ended, 7, between);
      expect([14, 21, 28, 29].map((minute) => look(ended, minute, "absent"))).toEqual([0, 0, 0, 1]);
    }
    const ended = new EndedKeeping();
    look(ended, 0, "absent");
    expect([20, 27, 34, 35].map((minute) => look(ended, minute, "absent"))).toEqual([0, 0, 0, 1]);
  });

  test("without a grace period only keepFor decides", () => {
    const ended = new EndedKeeping();

    expect([0, 30, 59, 60].map((minute) => look(ended, minute, "absent", 0))).toEqual([0, 0, 0, 1]);
  });

  test("does not believe a clock that is behind: it must have been seen to wait, as long as it may", () => {
    const late = (minute: number, ended: EndedKeeping, kept: string) =>
      ended.look([waiting({ kept })], viewOf("unknown"), {
        ...{ now: minute * MINUTE, graceMilliseconds: GRACE },
        date: minutes(10_000 + minute),
      }).length;
    const [day, minute] = [new EndedKeeping(), new EndedKeeping()];

    expect([0, 7, 14, 15].map((at) => late(at, day, "86400"))).toEqual([0, 0, 0, 1]);
    expect([0, 1].map((at) => late(at, minute, "60"))).toEqual([0, 1]);
  });

  const size = fc.record({ start: fc.nat(4), replicas: fc.nat(5) });
  const history = fc.array(
    fc.record({
      pause: fc.nat(12),
      set: fc.oneof(size, fc.constantFrom<KnownStatefulSet>("absent", "unknown")),
      pod: fc.constantFrom<PodState>("none", "none", "starting", "running", "finished"),
    }),
    { maxLength: 20 },
  );

  test("never frees one while its owner exists and its keepFor is not over", () => {
    const hasIt = (set: KnownStatefulSet): set is StatefulSetSize =>
      typeof set === "object" && set.start <= 3 && set.start + set.replicas > 3;
    fc.assert(
      fc.property(history, (looks) => {
        const ended = new EndedKeeping();
        let minute = 0;
        let lastWanted = 0;
        let seenSince = 0;
        for (const { pause, set, pod } of looks) {
          minute += pause;
          if (pause > 9) seenSince = minute;
          const isWanted = hasIt(set) || set === "unknown" || pod === "starting" || pod === "running";
          if (isWanted) lastWanted = minute;
          const freed = ended.look([waiting()], viewOf(set, pod), {
            ...{ now: minute * MINUTE, graceMilliseconds: GRACE },
            date: minutes(minute),
          });
          if (minute < 60 && minute - lastWanted < GRACE / MINUTE) expect(freed).toEqual([]);
          const isSeen = minute - seenSince >= GRACE / MINUTE;
          if (minute >= 60 && pod !== "starting" && isSeen) expect(freed).toHaveLength(1);
        }
      }),
      { numRuns: proofSize({ everyDay: 300, soak: 20_000 }) },
    );
  });
});
