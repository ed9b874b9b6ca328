import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ipam.ts";
import { podRecordKey, podRecordOf } from "../../model/pod-record.ts";
import type { NodeAllocation } from "./allocations.ts";
import { Candidates } from "./candidates.ts";
import { type ClusterView, judge } from "./cluster-judge.ts";

const ALLOCATION: NodeAllocation = {
  address: address("10.0.0.1"),
  block: prefix("10.0.0.0/29"),
  handle: "net.c1",
  sequenceNumber: 7n,
  network: "net",
  node: "n1",
  containerId: "c1",
  ifname: "eth0",
  assignedAt: undefined,
  pod: { namespace: "red", name: "web" },
  endpointKey: undefined,
};
const { pod: _, ...WITHOUT_POD } = ALLOCATION;
const TUNNEL: NodeAllocation = { ...WITHOUT_POD, handle: "vxlan-tunnel-addr-n1", tunnel: "VXLAN tunnel" };

/** A cluster with one pod, red/web, and node n1, which the orchestrator calls host-1. */
function view(
  pod: { node?: string; ips?: readonly string[]; status?: object } | undefined,
  nodes = { n1: "host-1" },
): ClusterView {
  const record =
    pod &&
    podRecordOf({
      metadata: { namespace: "red", name: "web" },
      spec: pod.node === undefined ? {} : { nodeName: pod.node },
      status: { podIPs: (pod.ips ?? []).map((ip) => ({ ip })), ...pod.status },
    });
  return {
    podAt: (key) => (key === podRecordKey({ namespace: "red", name: "web" }) ? record : undefined),
    nodeNamed: (node) => (nodes as Record<string, string>)[node],
    containerAt: (key) => (key === "endpoint" ? "c1" : undefined),
  };
}

const here = (more: object = {}) => ({ node: "host-1", ips: ["10.0.0.1"], ...more });
const NONE = {} as { n1: string };

describe("an address is", () => {
  test.each([
    ["in use", "pod red/web has it", ALLOCATION, view(here())],
    ["in use", "pod red/web has not reported its addresses yet", ALLOCATION, view(here({ ips: [] }))],
    ["in use", "pod red/web has it", ALLOCATION, view(here(), NONE)],
    ["unused", "pod red/web does not exist", ALLOCATION, view(undefined)],
    ["unused", "node n1 is gone, and pod red/web does not exist", ALLOCATION, view(undefined, NONE)],
    ["unused", "pod red/web is on node host-2", ALLOCATION, view(here({ node: "host-2", ips: ["10.0.0.2"] }))],
    // Our record of the node does not say what the orchestrator calls it.
    ["in use", "pod red/web has it", ALLOCATION, view(here(), { n1: "n1" })],
    ["unused", "pod red/web is not scheduled", ALLOCATION, view({ ips: [] })],
    ["unused", "pod red/web has 10.0.0.2, fd00::2", ALLOCATION, view(here({ ips: ["10.0.0.2", "fd00::2"] }))],
    ["unused", "pod red/web was evicted", ALLOCATION, view(here({ status: { phase: "Failed", reason: "Evicted" } }))],
    ["not judged", "it does not belong to a pod", WITHOUT_POD, view(undefined, NONE)],
    ["in use", "it is that of the VXLAN tunnel of node n1", TUNNEL, view(undefined)],
    ["unused", "node n1 is gone", TUNNEL, view(undefined, NONE)],
    [
      "not judged",
      "pod red/web exists, and may have it on interface net1",
      { ...ALLOCATION, ifname: "net1" },
      view(here({ ips: ["10.0.0.2"] })),
    ],
    ["unused", "pod red/web does not exist", { ...ALLOCATION, ifname: "net1" }, view(undefined)],
    [
      "in use",
      "the endpoint of pod red/web is of this container",
      { ...ALLOCATION, endpointKey: "endpoint" },
      view(here({ ips: ["10.0.0.2"] })),
    ],
    ["unused", "pod red/web does not exist", { ...ALLOCATION, endpointKey: "endpoint" }, view(undefined)],
  ] as const)("%s: %s", (kind, reason, allocation, cluster) => {
    expect(judge(allocation, cluster)).toMatchObject({ kind, reason });
  });
});

describe("a candidate", () => {
  const GRACE = 1000;
  const look = (
    candidates: Candidates,
    now: number,
    cluster: ClusterView,
    held: readonly NodeAllocation[] = [ALLOCATION],
  ) => candidates.look(held, cluster, { now, graceMilliseconds: GRACE });

  test("is overdue after the grace period, if its node exists", () => {
    const candidates = new Candidates();

    expect(look(candidates, 0, view(undefined))).toMatchObject([{ isOverdue: false, milliseconds: 0 }]);
    expect(look(candidates, 999, view(undefined))).toMatchObject([{ isOverdue: false }]);
    expect(look(candidates, 1000, view(undefined))).toMatchObject([{ isOverdue: true, milliseconds: 1000 }]);
  });

  test("starts again after it was seen in use, or assigned again", () => {
    const candidates = new Candidates();
    look(candidates, 0, view(undefined));
    expect(look(candidates, 500, view(here()))).toEqual([]);
    expect(look(candidates, 1000, view(undefined))).toMatchObject([{ isOverdue: false }]);
    const again = [{ ...ALLOCATION, sequenceNumber: 8n }];
    expect(look(candidates, 2000, view(undefined), again)).toMatchObject([{ isOverdue: false }]);
  });

  test("is never overdue if its node is gone, or without a grace period", () => {
    const gone = new Candidates();
    look(gone, 0, view(undefined, NONE));
    expect(look(gone, 1000, view(undefined, NONE))).toMatchObject([{ isNodeGone: true, isOverdue: false }]);
    const candidates = new Candidates();
    candidates.look([ALLOCATION], view(undefined), { now: 0, graceMilliseconds: 0 });
    const later = candidates.look([ALLOCATION], view(undefined), { now: 1e9, graceMilliseconds: 0 });
    expect(later).toMatchObject([{ isOverdue: false }]);
  });

  test("is a whole handle: one address in use keeps all of them", () => {
    const second = { ...ALLOCATION, address: address("10.0.0.2") };

    expect(look(new Candidates(), 0, view(here({ ips: ["10.0.0.2"] })), [ALLOCATION, second])).toEqual([]);
    expect(look(new Candidates(), 0, view(undefined), [ALLOCATION, second])).toMatchObject([
      { allocations: [ALLOCATION, second] },
    ]);
  });

  test("is what one container uses of that which is kept for its pod", () => {
    const lost = { ...ALLOCATION, handle: "keep-1", ifname: "net1", isKept: true } as const;
    const used = { ...lost, ifname: "eth0", node: "n2", containerId: "c2", address: address("10.0.0.2") };
    const nodes = { n2: "host-2" } as object as { n1: string };
    const cluster = view(here({ node: "host-2", ips: ["10.0.0.2"] }), nodes);

    expect(look(new Candidates(), 0, cluster, [lost, used])).toMatchObject([{ allocations: [lost], isNodeGone: true }]);
  });
});
