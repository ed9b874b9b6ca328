import { expect, test } from "bun:test";
import { address, nodeChange, prefix, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { podRecordOf } from "../../model/pod-record.ts";
import { formatMark } from "../link-mark.ts";
import type { NodeAllocation } from "./allocations.ts";
import { confirmUnseen } from "./confirm-unseen.ts";
import { findUnseen } from "./find.ts";

const ASSIGNED = new Date("2026-01-02T03:00:00Z");
const NOW = new Date("2026-01-02T04:00:00Z");
const NO_LINKS = { marks: new Set<string>(), routed: new Map(), bootedAt: ASSIGNED };

/** Of a container that the former machine of the name ran. */
function kept(containerId: string, text: string): NodeAllocation {
  return {
    ...{ address: address(text), block: prefix("10.0.0.0/28"), handle: "keep-db", sequenceNumber: 1n },
    ...{ network: "net", node: "node-1", containerId, ifname: "eth0", assignedAt: ASSIGNED },
    ...{ pod: { namespace: "shop", name: "db-0" }, endpointKey: undefined, isKept: true as const },
  };
}

/** The reasons to end the use of a kept address, while the orchestrator has this pod of the name. */
async function reasons(pod: { readonly node: string; readonly addresses: readonly string[] } | undefined) {
  const store = openMemory();
  await seed(store, nodeChange("node-1"));
  const used = [kept("c1", "10.0.0.5")];
  const unseen = findUnseen(used, new Set(used), { links: NO_LINKS, now: NOW });
  const record =
    pod &&
    podRecordOf({
      metadata: { namespace: "shop", name: "db-0" },
      spec: { nodeName: pod.node },
      status: { podIPs: pod.addresses.map((ip) => ({ ip })) },
    });
  const found = await confirmUnseen(unseen, {
    store,
    readPod: async () => record,
    podsOfMachine: async () => [],
    isAbsent: async () => false,
    containerAddresses: async () => undefined,
    isDeclaredDead: undefined,
  });
  return found.map(({ reason }) => reason);
}

test("what a pod of the node's former machine used waits again, wherever the next pod waits for it", async () => {
  const expected = [expect.stringContaining("before this machine registered the node")];
  expect(await reasons(undefined)).toEqual(expected);
  expect(await reasons({ node: "node-2", addresses: [] })).toEqual(expected);
  expect(await reasons({ node: "node-1", addresses: [] })).toEqual(expected);
});

test("it stays in use while its pod says that it has it", async () => {
  expect(await reasons({ node: "node-1", addresses: ["10.0.0.5"] })).toEqual([]);
});

test("a container of the same pod that runs keeps only its own", () => {
  const [former, present] = [kept("c1", "10.0.0.5"), kept("c2", "10.0.0.6")];
  const links = { ...NO_LINKS, marks: new Set([formatMark({ network: "net", containerId: "c2", ifname: "eth0" })]) };
  expect(findUnseen([former, present], new Set([former, present]), { links, now: NOW })).toEqual([[former]]);
});
