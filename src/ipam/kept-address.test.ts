import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ipam.ts";
import { podOfAttribute } from "../model/block-owners.ts";
import { endOfKeeping, isKeptInUse, isWaiting, keepHandle, keptOf } from "../model/kept-address.ts";
import { assignOrdinal, emptyBlock, releaseOrdinals } from "./block.ts";
import { findProblems } from "./invariants.ts";
import { allocationsIn } from "./leaks/allocations.ts";
import { judge } from "./leaks/cluster-judge.ts";
import { findLeaks } from "./leaks/find.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const HANDLE = keepHandle({ network: "pods", namespace: "shop", identity: "pod/db-0" });
const attributes = {
  handleId: HANDLE,
  secondary: {
    pod: "db-0",
    namespace: "shop",
    network: "pods",
    interface: "eth0",
    node: "n2",
    containerID: "c1",
    kept: "3600",
    owner: "StatefulSet/db",
    timestamp: "2026-01-01T00:00:00.000Z",
  },
};
const cidr = prefix("10.0.0.0/29");
const empty = emptyBlock(cidr, "host:n1", 1n);
const inUse = assignOrdinal(empty, 2, attributes)?.block ?? empty;
const waiting = releaseOrdinals(inUse, [2], NOW);

describe("keptOf()", () => {
  test("tells who uses it, or since when it waits and until when", () => {
    const common = {
      handle: HANDLE,
      network: "pods",
      interface: "eth0",
      namespace: "shop",
      namespaceUid: undefined,
      pod: "db-0",
      containerName: undefined,
      owner: "StatefulSet/db",
      keepForSeconds: 3600,
    };
    const used = keptOf(inUse.attributes[0]);
    const waits = keptOf(waiting.attributes[0]);

    expect(used).toEqual({
      ...common,
      since: new Date("2026-01-01T00:00:00Z"),
      user: { containerId: "c1", node: "n2" },
    });
    expect(waits).toEqual({ ...common, since: NOW, lastNode: "n2" });
    expect(used && endOfKeeping(used)).toBeUndefined();
    expect(waits && endOfKeeping(waits)).toEqual(new Date("2026-01-02T04:04:05Z"));
    expect([isKeptInUse(inUse.attributes[0]), isWaiting(inUse.attributes[0])]).toEqual([true, false]);
    expect([isKeptInUse(waiting.attributes[0]), isWaiting(waiting.attributes[0])]).toEqual([false, true]);
  });

  test("knows no other allocation", () => {
    expect(keptOf({ handleId: "pods.c1", secondary: { node: "n2" } })).toBeUndefined();
    expect(isWaiting({ handleId: "pods.c1", secondary: {} })).toBe(false);
  });
});

test("keepHandle() is another one for each network, namespace and identity, and has no dot", () => {
  const handles = [
    HANDLE,
    keepHandle({ network: "pods", namespace: "shop", identity: "pod/db-1" }),
    keepHandle({ network: "pods", namespace: "shop2", identity: "pod/db-0" }),
    keepHandle({ network: "pods2", namespace: "shop", identity: "pod/db-0" }),
  ];

  expect(new Set(handles).size).toBe(handles.length);
  for (const handle of handles) expect(handle).toMatch(/^keep-[0-9a-f]{32}$/);
});

describe("one that waits", () => {
  test("is no endpoint's, no leak, and in order", () => {
    const records = {
      pools: [cidr],
      blocks: [waiting],
      handles: [{ handleId: HANDLE, blocks: { "10.0.0.0/29": 1 } }],
      affinities: [{ node: "n1", cidr, state: "confirmed" as const }],
    };

    expect(podOfAttribute(waiting, 0)).toBeUndefined();
    expect(allocationsIn(waiting)).toEqual([]);
    expect(findProblems(records)).toEqual([]);
    expect(findProblems({ ...records, blocks: [inUse] })).toEqual([]);
    expect(findProblems({ ...records, handles: [] })).not.toEqual([]);
  });
});

describe("one in use", () => {
  test("is the endpoint's of its pod, on the node that uses it", () => {
    expect(podOfAttribute(inUse, 0)).toEqual({ namespace: "shop", pod: "db-0", node: "n2" });
  });

  test("is a leak for its host if that has no link of the container", () => {
    const allocations = allocationsIn(inUse);
    const links = (...marks: readonly string[]) => ({
      marks: new Set(marks),
      routed: new Map<string, string>(),
      bootedAt: new Date(0),
    });

    expect(allocations).toMatchObject([{ containerId: "c1", ifname: "eth0", node: "n2", isKept: true }]);
    expect(findLeaks(allocations, { links: links(), now: NOW })).toHaveLength(1);
    expect(findLeaks(allocations, { links: links("pods/c1/eth0"), now: NOW })).toEqual([]);
  });

  test("is judged by its host alone as long as its node exists, however silent it is", () => {
    const view = { podAt: () => undefined, containerAt: () => undefined };
    const verdicts = ["n2", undefined].map((name) =>
      allocationsIn(inUse).map((each) => judge(each, { ...view, nodeNamed: () => name }).kind),
    );

    expect(verdicts).toEqual([["not judged"], ["unused"]]);
  });
});
