/** The plan of routes from records as IPAM and node agents write them, through the replicas that the agent follows. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { prefix } from "../../../test/support/ip.ts";
import { means, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { planLines } from "../../../test/support/routing-facts.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { sourceOf } from "../../datastore/replica/kinds.ts";
import { startReplica } from "../../datastore/replica.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { type IPAMBlock, writeBlock } from "../../model/ipam-block.ts";
import { blockKey } from "../../model/keys.ts";
import { ENDPOINT, NODE } from "../../model/kinds.ts";
import { blockFacts, ROUTED_BLOCK_KINDS, ROUTING_KINDS, resourceFacts } from "../../routing/inputs.ts";
import type { PlanChange } from "../../routing/plan.ts";
import { RoutePlanner } from "../../routing/planner.ts";
import { vxlanMac } from "../../routing/vxlan-mac.ts";

let ending = new AbortController();
beforeEach(() => {
  ending = new AbortController();
});
afterEach(() => ending.abort());

function nodeRecord(name: string, address: string, tunnel: string) {
  const spec = { bgp: { ipv4Address: address }, ipv4VXLANTunnelAddr: tunnel, vxlanTunnelMACAddr: vxlanMac(name, 4) };
  const value = NODE.codec.write(NODE.codec.make({ name }, spec));
  return { kind: "put", key: NODE.key({ name }), value } as const;
}

/** A pool of two blocks, and a node for each of them; a third one has to borrow. */
async function cluster() {
  const store = openMemory();
  await seed(
    store,
    poolChange("blue", "10.0.0.0/28", { blockSize: 29, vxlanMode: "Always" }),
    nodeRecord("n1", "192.0.2.1/24", "10.9.0.1"),
    nodeRecord("n2", "192.0.2.2/24", "10.9.0.2"),
    nodeRecord("n3", "192.0.2.3/24", "10.9.0.3"),
  );
  const allocator = openAllocator(store, means());
  const assign = (handle: string, node: string) => allocator.assign(request(handle, { node }));
  return { store, assign, release: (handle: string, node: string) => allocator.releaseHandle({ handle, node }) };
}

/** Follows the store like the agent of the node. `next`: what the next change of blocks has changed. */
async function follow(store: ReturnType<typeof openMemory>, node: string) {
  const planner = new RoutePlanner(node, { isEnabled: true, isBgpEnabled: true });
  const kinds = { ...ROUTING_KINDS, endpoints: sourceOf(ENDPOINT) };
  const resources = startReplica(store, kinds, { signal: ending.signal });
  const blocks = startReplica(store, ROUTED_BLOCK_KINDS, { signal: ending.signal });
  for await (const { changes } of resources.updates()) {
    planner.update(resourceFacts(changes, node));
    break;
  }
  const updates = blocks.updates()[Symbol.asyncIterator]();
  const next = async (): Promise<PlanChange> => {
    const update = await updates.next();
    if (update.done) throw new Error("the replica has ended");
    return planner.update(blockFacts(update.value.changes));
  };
  await next();
  return { planner, next };
}

const routesOf = ({ plan }: RoutePlanner) => planLines(plan).filter((line) => line.startsWith("10.0."));

describe("a plan from records", () => {
  test("follows claimed blocks, borrowed and released addresses; other assignments change nothing", async () => {
    const { store, assign, release } = await cluster();
    const first = await assign("a", "n1");
    const { planner, next } = await follow(store, "n1");
    const [own = ""] = routesOf(planner);
    expect(own).toEndWith(" blackhole");
    expect(first.addresses).toHaveLength(1);

    await assign("b", "n2");
    expect((await next()).routes.size).toBe(1);
    const [theirs = ""] = routesOf(planner).filter((line) => line !== own);
    expect(theirs).toEndWith(" via 10.9.0.2 on vxlan4");

    await assign("c", "n2");
    expect((await next()).routes.size).toBe(0);

    await assign("d", "n3");
    expect((await next()).routes.size).toBe(1);
    expect(routesOf(planner).filter((line) => line !== own && line !== theirs)).toEqual([
      expect.stringMatching(/^10\.0\.0\.\d+\/32 via 10\.9\.0\.3 on vxlan4$/),
    ]);

    await release("d", "n3");
    expect((await next()).routes.size).toBe(1);
    expect(routesOf(planner).toSorted()).toEqual([own, theirs].toSorted());
  });

  test("keeps tunnel addresses that former releases have borrowed without the name of their node", async () => {
    const store = openMemory();
    const blockOf = (cidr: string, node: string, attributes: IPAMBlock["attributes"]) => {
      const block = {
        ...{ cidr: prefix(cidr), affinity: `host:${node}`, attributes, unallocated: [] },
        allocations: Array.from({ length: 8 }, (_, ordinal) => (ordinal < attributes.length ? ordinal : undefined)),
        ...{ sequenceNumber: 1n, sequenceNumberForAllocation: {}, deleted: false },
      };
      return { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) } as const;
    };
    const ofTunnel = (node: string) => ({ node, type: "vxlanTunnelAddress" });
    await seed(
      store,
      poolChange("blue", "10.0.0.0/16", { blockSize: 29, vxlanMode: "Always" }),
      nodeRecord("n1", "192.0.2.1/24", "10.0.0.0"),
      nodeRecord("n2", "192.0.2.2/24", "10.0.0.1"),
      nodeRecord("n3", "192.0.2.3/24", "10.0.0.2"),
      nodeRecord("n4", "192.0.2.4/24", "10.0.0.3"),
      blockOf("10.0.0.0/29", "n1", [
        { handleId: "vxlan-tunnel-addr-n1", secondary: ofTunnel("n1") },
        { handleId: "vxlan-tunnel-addr-n2", secondary: {} },
        { secondary: {} },
        { handleId: "vxlan-tunnel-addr-n4", secondary: ofTunnel("n4") },
      ]),
      blockOf("10.0.0.8/29", "n2", []),
      blockOf("10.0.0.16/29", "n3", []),
      blockOf("10.0.0.24/29", "n4", []),
    );
    const { planner } = await follow(store, "n1");
    expect(routesOf(planner)).toEqual([
      "10.0.0.0/29 blackhole",
      "10.0.0.1/32 via 10.0.0.1 on vxlan4",
      "10.0.0.16/29 via 10.0.0.2 on vxlan4",
      "10.0.0.2/32 via 10.0.0.2 on vxlan4",
      "10.0.0.24/29 via 10.0.0.3 on vxlan4",
      "10.0.0.3/32 via 10.0.0.3 on vxlan4",
      "10.0.0.8/29 via 10.0.0.1 on vxlan4",
    ]);
    expect(planner.plan.problems).toEqual([]);
  });
});
