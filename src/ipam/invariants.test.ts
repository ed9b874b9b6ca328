import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ipam.ts";
import type { AffinityState } from "../model/block-affinity.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { assignOrdinal, emptyBlock } from "./block.ts";
import { findProblems, type IpamRecords, type ProblemKind, type Severity } from "./invariants.ts";

const CIDR = "10.0.0.0/29";
const held: IPAMBlock =
  assignOrdinal(emptyBlock(prefix(CIDR), "host:n", 9n), 2, { handleId: "net.a", secondary: {} })?.block ??
  emptyBlock(prefix(CIDR), "host:n", 9n);
const heldTwice = assignOrdinal(held, 3, { handleId: "net.a", secondary: {} })?.block ?? held;
const { affinity: _, ...nobodys } = held;
const FREE = "10.0.0.8/29";
const surplus = { handleId: "net.b", blocks: { [FREE]: 1 } };

const claim = (node: string, cidr: string, state: AffinityState = "confirmed") => ({ node, cidr: prefix(cidr), state });

const RIGHT: IpamRecords = {
  pools: [prefix("10.0.0.0/24")],
  blocks: [held],
  handles: [{ handleId: "net.a", blocks: { [CIDR]: 1 } }],
  affinities: [claim("n", CIDR)],
};

const WRONG: readonly (readonly [ProblemKind, Severity, Partial<IpamRecords>])[] = [
  ["block-inconsistent", "corrupt", { blocks: [{ ...held, unallocated: [0, 1, 2, 3, 4, 5, 6, 7] }] }],
  ["block-inconsistent", "corrupt", { blocks: [{ ...held, unallocated: [0, 1, 3, 4, 5, 6] }] }],
  ["block-inconsistent", "corrupt", { blocks: [{ ...held, unallocated: [0, 0, 1, 3, 4, 5, 6, 7] }] }],
  ["block-inconsistent", "corrupt", { blocks: [{ ...held, attributes: [...held.attributes, { secondary: {} }] }] }],
  ["block-inconsistent", "corrupt", { blocks: [{ ...held, sequenceNumber: 9n }] }],
  ["allocation-without-handle", "corrupt", { handles: [] }],
  ["allocation-outside-pools", "corrupt", { pools: [prefix("10.9.0.0/24")] }],
  ["list-outside-pools", "corrupt", { lists: [{ name: "web", addresses: [address("10.0.0.9"), address("fd00::9")] }] }],
  ["handle-count-wrong", "unfinished", { handles: [{ handleId: "net.a", blocks: { [CIDR]: 2 } }] }],
  ["handle-count-wrong", "corrupt", { blocks: [heldTwice], handles: RIGHT.handles }],
  ["handle-without-block", "unfinished", { handles: [...RIGHT.handles, surplus] }],
  ["affinity-stale", "corrupt", { affinities: [...RIGHT.affinities, claim("other", CIDR)] }],
  ["affinity-stale", "unfinished", { affinities: [...RIGHT.affinities, claim("other", CIDR, "pending")] }],
  ["affinity-stale", "corrupt", { blocks: [nobodys] }],
  ["affinity-without-block", "corrupt", { affinities: [...RIGHT.affinities, claim("n", FREE)] }],
  ["affinity-without-block", "unfinished", { affinities: [...RIGHT.affinities, claim("n", FREE, "pending")] }],
  ["affinity-unconfirmed", "unfinished", { affinities: [claim("n", CIDR, "pending")] }],
  ["affinity-unconfirmed", "unfinished", { affinities: [claim("n", CIDR, "pendingDeletion")] }],
  ["block-without-affinity", "unfinished", { affinities: [] }],
  ["block-abandoned", "unfinished", { blocks: [held, emptyBlock(prefix(FREE), undefined, 1n)] }],
];

describe("findProblems()", () => {
  test("is content with a world that is right", () => {
    expect(findProblems(RIGHT)).toEqual([]);
  });

  test.each(WRONG)("finds %s (%s), and nothing else", (kind, severity, wrong) => {
    const found = findProblems({ ...RIGHT, ...wrong }).map((each) => `${each.kind} ${each.severity}`);

    expect([...new Set(found)]).toEqual([`${kind} ${severity}`]);
  });

  test("finds blocks that share addresses, also where one lies deep inside another", () => {
    const wide = emptyBlock(prefix("10.0.0.0/26"), "host:n", 1n);
    const inside = [held, emptyBlock(prefix("10.0.0.16/29"), "host:n", 1n)];
    const affinities = [wide, ...inside].map((block) => ({ node: "n", cidr: block.cidr, state: "confirmed" as const }));

    const problems = findProblems({ ...RIGHT, blocks: [wide, ...inside], affinities });

    expect(problems.map((each) => [each.kind, each.block])).toEqual([
      ["blocks-overlap", "10.0.0.0/29"],
      ["blocks-overlap", "10.0.0.16/29"],
    ]);
  });
});
