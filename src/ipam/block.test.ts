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
