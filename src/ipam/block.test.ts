import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { prefix } from "../../test/support/ipam.ts";
import type { BlockAttribute, IPAMBlock } from "../model/ipam-block.ts";
import { assignNext, assignOrdinal, attributesOf, emptyBlock, isEmpty, ordinalsOf, releaseOrdinals } from "./block.ts";
import { findBlockProblems } from "./invariants.ts";

const START = 1_723_000_000_000_000_000n;
const NOW = new Date("2026-01-02T03:04:05Z");
const block = emptyBlock(prefix("10.0.0.0/29"), "host:n", START);
const owned = (handleId: string, secondary = {}): BlockAttribute => ({ handleId, secondary });

describe("assignNext()", () => {
  test("gives what was free the longest: a released address comes back last", () => {
    const first = assignNext(block, owned("a"), { now: NOW });
    const released = releaseOrdinals(first?.block ?? block, [first?.ordinal ?? -1], NOW);

    const order: number[] = [];
    let rest = released;
    for (
      let taken = assignNext(rest, owned("b"), { now: NOW });
      taken;
      taken = assignNext(rest, owned("b"), { now: NOW })
    ) {
      order.push(taken.ordinal);
      rest = taken.block;
    }
    expect(order).toEqual([1, 2, 3, 4, 5, 6, 7, 0]);
  });

  test("passes over reserved addresses and keeps their place in the queue", () => {
    const taken = assignNext(block, owned("a"), { now: NOW, reserved: [prefix("10.0.0.0/31")] });

    expect(taken?.ordinal).toBe(2);
    expect(taken?.block.unallocated).toEqual([0, 1, 3, 4, 5, 6, 7]);
  });

  test("finds nothing where all that is free is reserved", () => {
    expect(assignNext(block, owned("a"), { now: NOW, reserved: [prefix("10.0.0.0/24")] })).toBeUndefined();
  });

  test("numbers the allocation with the block's sequence number, exactly, and counts that up", () => {
    const taken = assignNext(block, owned("a"), { now: NOW });

    expect(taken?.block.sequenceNumberForAllocation).toEqual({ 0: START });
    expect(taken?.block.sequenceNumber).toBe(START + 1n);
  });
});

describe("assignOrdinal()", () => {
  test("gives a free ordinal, and no other", () => {
    const taken = assignOrdinal(block, 5, owned("a"));

    expect(taken?.ordinal).toBe(5);
    expect(taken && assignOrdinal(taken.block, 5, owned("b"))).toBeUndefined();
    expect(assignOrdinal(block, 8, owned("a"))).toBeUndefined();
    expect(assignOrdinal(block, -1, owned("a"))).toBeUndefined();
  });
});

describe("attributes", () => {
  test("are kept once for all allocations that agree in them", () => {
    const once = assignOrdinal(block, 0, owned("a", { pod: "p" }))?.block ?? block;
    const twice = assignOrdinal(once, 1, owned("a", { pod: "p" }))?.block ?? block;
    const other = assignOrdinal(twice, 2, owned("a", { pod: "q" }))?.block ?? block;

    expect(other.attributes).toHaveLength(2);
    expect(attributesOf(other, 2)).toEqual(owned("a", { pod: "q" }));
  });
});

describe("ordinalsOf()", () => {
  const first = assignOrdinal(block, 0, owned("a", { interface: "eth0" }))?.block ?? block;
  const second = assignOrdinal(first, 1, owned("a", { interface: "eth1" }))?.block ?? block;
  const both = assignOrdinal(second, 2, owned("a"))?.block ?? block;

  test("tells the interfaces of one container apart", () => {
    expect(ordinalsOf(second, { handle: "a", interface: "eth1" })).toEqual([1]);
  });

  test("finds every interface where none is named, and what bears none for each of them", () => {
    expect(ordinalsOf(both, { handle: "a" })).toEqual([0, 1, 2]);
    expect(ordinalsOf(both, { handle: "a", interface: "eth0" })).toEqual([0, 2]);
  });
});

describe("any walk of assignments and releases", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("next" as const), handle: fc.constantFrom("a", "b", "c") }),
    fc.record({ kind: fc.constant("this" as const), handle: fc.constantFrom("a", "b"), ordinal: fc.nat(9) }),
    fc.record({ kind: fc.constant("release" as const), ordinals: fc.array(fc.nat(9), { maxLength: 4 }) }),
    fc.record({ kind: fc.constant("release of" as const), handle: fc.constantFrom("a", "b", "c") }),
  );
  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

  function walk(from: IPAMBlock, each: Step): IPAMBlock {
    switch (each.kind) {
      case "next":
        return assignNext(from, owned(each.handle), { now: NOW, reserved: [prefix("10.0.0.3/32")] })?.block ?? from;
      case "this":
        return assignOrdinal(from, each.ordinal, owned(each.handle, { n: String(each.ordinal % 2) }))?.block ?? from;
      case "release":
        return releaseOrdinals(from, each.ordinals, NOW);
      case "release of":
        return releaseOrdinals(from, ordinalsOf(from, { handle: each.handle }), NOW);
    }
  }

  test("keeps every invariant, and loses no address", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let last = block;
        for (const each of steps) {
          last = walk(last, each);
          expect(findBlockProblems(last)).toEqual([]);
        }
        const emptied = releaseOrdinals(last, [...last.allocations.keys()], NOW);
        expect(isEmpty(emptied)).toBe(true);
        expect([...emptied.unallocated].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
        expect(emptied.attributes).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("is seen through when a step breaks the block", () => {
    const broken = { ...block, unallocated: [0, 0, 1] };

    expect(findBlockProblems(broken).length).toBeGreaterThan(0);
  });
});

describe("an address that is kept for an identity", () => {
  const inUse = (container: string): BlockAttribute =>
    owned("keep-1", {
      kept: "86400",
      node: "n",
      containerID: container,
      pod: "db-0",
      timestamp: "2026-01-01T00:00:00Z",
    });
  const taken = assignOrdinal(block, 3, inUse("c1"))?.block ?? block;

  test("waits after its release, without node and container", () => {
    const waiting = releaseOrdinals(taken, [3], NOW);

    expect(waiting.unallocated).not.toContain(3);
    expect(waiting.attributes).toEqual([
      owned("keep-1", { kept: "86400", pod: "db-0", timestamp: NOW.toISOString(), lastNode: "n" }),
    ]);
    expect(waiting.released).toBeUndefined();
    expect(waiting.sequenceNumberForAllocation[3]).not.toBe(taken.sequenceNumberForAllocation[3]);
  });

  test("waits for as long as it did, however often it is released", () => {
    const waiting = releaseOrdinals(taken, [3], NOW);

    expect(releaseOrdinals(waiting, [3], new Date(NOW.getTime() + 1000))).toBe(waiting);
  });

  test("is free, and rests, after a release for good, whether a container uses it or not", () => {
    for (const before of [taken, releaseOrdinals(taken, [3], NOW)]) {
      const freed = releaseOrdinals(before, [3], NOW, "for good");
      expect(isEmpty(freed)).toBe(true);
      expect(freed.released?.[3]).toBeDefined();
    }
  });

  const step = fc.record({
    kind: fc.constantFrom("take", "use again", "end", "free"),
    ordinal: fc.nat(7),
    kept: fc.boolean(),
    identity: fc.constantFrom("keep-1", "keep-2"),
    container: fc.constantFrom("c1", "c2"),
  });

  test("in any order of uses and ends: counted by its handle, and never free before a release for good", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let last = block;
        /** What should be held: by ordinal the handle, and the container if there is one. */
        const expected = new Map<number, { readonly handle: string; readonly container: string | undefined }>();
        for (const { kind, ordinal, kept, identity, container } of steps) {
          const handle = kept ? identity : `net.${container}`;
          const attributes = kept
            ? owned(handle, { kept: "60", node: "n", containerID: container })
            : owned(handle, { node: "n" });
          const before = expected.get(ordinal);
          if (kind === "take") {
            const next = assignOrdinal(last, ordinal, attributes);
            expect(next === undefined).toBe(before !== undefined);
            if (next !== undefined) expected.set(ordinal, { handle, container });
            last = next?.block ?? last;
          } else if (kind === "use again" && before?.handle.startsWith("keep-") && before.container === undefined) {
            const freed = releaseOrdinals(last, [ordinal], NOW, "for good");
            const again = owned(before.handle, { kept: "60", node: "n", containerID: container });
            last = assignOrdinal(freed, ordinal, again)?.block ?? last;
            expected.set(ordinal, { handle: before.handle, container });
          } else if (kind === "end") {
            last = releaseOrdinals(last, [ordinal], NOW);
            if (before?.handle.startsWith("keep-")) expected.set(ordinal, { ...before, container: undefined });
            else expected.delete(ordinal);
          } else if (kind === "free") {
            last = releaseOrdinals(last, [ordinal], NOW, "for good");
            expected.delete(ordinal);
          }
          expect(findBlockProblems(last)).toEqual([]);
          for (const each of last.allocations.keys()) {
            const { handleId, secondary } = attributesOf(last, each) ?? {};
            const { handle, container: user } = expected.get(each) ?? {};
            expect(handleId).toBe(handle);
            expect(last.unallocated.includes(each)).toBe(handle === undefined);
            if (handle?.startsWith("keep-")) expect(secondary?.["containerID"]).toBe(user);
          }
          for (const counted of ["keep-1", "keep-2", "net.c1"]) {
            const held = [...expected.values()].filter(({ handle: each }) => each === counted).length;
            expect(ordinalsOf(last, { handle: counted })).toHaveLength(held);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
