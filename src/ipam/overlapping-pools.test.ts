import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ipam.ts";
import { markOverlapping } from "./overlapping-pools.ts";
import type { Pool } from "./pools.ts";

const pool = (name: string, cidr: string, createdAt = ""): Pool => ({
  name,
  cidr: prefix(cidr),
  blockLength: 26,
  disabled: false,
  createdAt,
  natOutgoing: false,
  announcing: { tunnel: undefined, isExported: true },
  allowedUses: ["Workload"],
  nodeSelector: "all()",
  selects: () => true,
  key: `/pools/${name}`,
  revision: "1",
});
const [EARLY, LATE] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.500Z"];
const marked = (...pools: readonly Pool[]) =>
  markOverlapping(pools).flatMap(({ name, overlaps }) => (overlaps === undefined ? [] : [[name, overlaps]]));

describe("markOverlapping()", () => {
  test.each([
    ["none of pools side by side", [pool("a", "10.0.0.0/24"), pool("b", "10.0.1.0/24"), pool("c", "fd00::/64")], []],
    ["the later of two", [pool("a", "10.0.0.0/24", LATE), pool("b", "10.0.0.0/16", EARLY)], ["a"]],
    ["both of the same time", [pool("a", "10.0.0.0/24", EARLY), pool("b", "10.0.0.0/16", EARLY)], ["a", "b"]],
    ["the one with a time, if the other has none", [pool("a", "10.0.0.0/8", LATE), pool("b", "10.9.0.0/16")], ["a"]],
    [
      "two that lie in one, not the pool beside them",
      [
        pool("in-1", "10.1.0.0/16", LATE),
        pool("beside", "11.0.0.0/8", LATE),
        pool("all", "10.0.0.0/8", EARLY),
        pool("in-2", "10.2.0.0/16", LATE),
      ],
      ["in-1", "in-2"],
    ],
  ])("marks %s", (_, pools, expected) => {
    expect(marked(...pools).map(([name]) => name ?? "")).toEqual(expected);
  });

  test("names the other pool, its CIDR and the order", () => {
    expect(marked(pool("a", "10.0.0.0/24", LATE), pool("b", "10.0.0.0/16", EARLY))).toEqual([
      ["a", 'it overlaps pool "b" (10.0.0.0/16), which was created earlier'],
    ]);
  });
});
