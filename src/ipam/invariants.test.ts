import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ipam.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { assignOrdinal, emptyBlock } from "./block.ts";
import { findProblems, type ProblemKind, type World } from "./invariants.ts";

const CIDR = "10.0.0.0/29";
const held: IPAMBlock =
  assignOrdinal(emptyBlock(prefix(CIDR), "host:n", 9n), 2, { handleId: "net.a", secondary: {} })?.block ??
  emptyBlock(prefix(CIDR), "host:n", 9n);
const { affinity: _, ...nobodys } = held;

const RIGHT: World = {
  pools: [prefix("10.0.0.0/24")],
  blocks: [held],
  handles: [{ handleId: "net.a", blocks: { [CIDR]: 1 } }],
  affinities: [{ node: "n", cidr: prefix(CIDR) }],
};

const WRONG: readonly (readonly [ProblemKind, Partial<World>])[] = [
  ["block-inconsistent", { blocks: [{ ...held, unallocated: [0, 1, 2, 3, 4, 5, 6, 7] }] }],
  ["block-inconsistent", { blocks: [{ ...held, unallocated: [0, 1, 3, 4, 5, 6] }] }],
  ["block-inconsistent", { blocks: [{ ...held, unallocated: [0, 0, 1, 3, 4, 5, 6, 7] }] }],
  ["block-inconsistent", { blocks: [{ ...held, attributes: [...held.attributes, { secondary: {} }] }] }],
  ["block-inconsistent", { blocks: [{ ...held, sequenceNumber: 9n }] }],
  ["allocation-without-handle", { handles: [] }],
  ["allocation-outside-pools", { pools: [prefix("10.9.0.0/24")] }],
  ["handle-count-wrong", { handles: [{ handleId: "net.a", blocks: { [CIDR]: 2 } }] }],
  ["handle-without-block", { handles: [...RIGHT.handles, { handleId: "net.b", blocks: { "10.0.0.8/29": 1 } }] }],
  ["affinity-stale", { affinities: [...RIGHT.affinities, { node: "other", cidr: prefix(CIDR) }] }],
  ["affinity-stale", { blocks: [nobodys] }],
  ["affinity-without-block", { affinities: [...RIGHT.affinities, { node: "n", cidr: prefix("10.0.0.8/29") }] }],
  ["block-without-affinity", { affinities: [] }],
  ["block-abandoned", { blocks: [held, emptyBlock(prefix("10.0.0.8/29"), undefined, 1n)] }],
];

describe("findProblems()", () => {
  test("is content with a world that is right", () => {
    expect(findProblems(RIGHT)).toEqual([]);
  });

  test.each(WRONG)("finds %s, and nothing else", (kind, wrong) => {
    const kinds = findProblems({ ...RIGHT, ...wrong }).map((each) => each.kind);

    expect([...new Set(kinds)]).toEqual([kind]);
  });

  test("finds blocks that share addresses, also where one lies deep inside another", () => {
    const wide = emptyBlock(prefix("10.0.0.0/26"), "host:n", 1n);
    const inside = [held, emptyBlock(prefix("10.0.0.16/29"), "host:n", 1n)];
    const affinities = [wide, ...inside].map((block) => ({ node: "n", cidr: block.cidr }));

    const problems = findProblems({ ...RIGHT, blocks: [wide, ...inside], affinities });

    expect(problems.map((each) => [each.kind, each.block])).toEqual([
      ["blocks-overlap", "10.0.0.0/29"],
      ["blocks-overlap", "10.0.0.16/29"],
    ]);
  });
});
