import { expect, test } from "bun:test";
import { applyNat } from "../../src/firewall/apply-nat.ts";
import { prefix } from "../../test/support/ip.ts";
import { poolChange, seed } from "../../test/support/ipam.ts";
import { ModelSockets } from "../kernel/nftables/model-sockets.ts";
import { natFollowsPools, servedCallsLeaveNat } from "./nat.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const AGENT = { processId: 1, processName: "agent 1 on node-1" };
const SERVER = { processId: 2, processName: "calls 2 on node-1" };
const OWN = { processId: 3, processName: "call 3 on node-1" };

const BLUE = { cidr: prefix("10.0.0.0/24"), natOutgoing: true };
const RED = { cidr: prefix("10.1.0.0/24"), natOutgoing: false };

/** A node whose kernel takes what is written as any process, and a pool "blue" with natOutgoing. */
async function worldOf() {
  const world = await SmallWorld.make("node-1");
  const host = { ...emptyHost(), isNatFollowed: true };
  const sockets = new ModelSockets();
  host.root.nftables = sockets.state;
  world.nodes.set("node-1", { name: "node-1", isRegistered: true, attachments: new Map(), host });
  await seed(world.store, poolChange("blue", "10.0.0.0/24", { natOutgoing: true }));
  return { world, host, sockets };
}

test("at rest the table is for the pools that there are", async () => {
  const { world, sockets } = await worldOf();
  const check = () => natFollowsPools().check(world);
  expect(check()).toEqual(["node-1: there is no table, and 10.0.0.0/24 has natOutgoing"]);

  await applyNat(sockets.open(AGENT), [BLUE]);
  expect(check()).toEqual([]);

  await seed(world.store, poolChange("red", "10.0.1.0/24", { natOutgoing: false }));
  expect(check()).toEqual(['node-1: "pools" is not 10.0.0.0/24, 10.0.1.0/24: it differs at 10.0.2.0']);
  await applyNat(sockets.open(AGENT), [BLUE, { ...RED, cidr: prefix("10.0.1.0/24") }]);
  expect(check()).toEqual([]);

  await seed(world.store, poolChange("blue", "10.0.0.0/24", { natOutgoing: false }));
  expect(check()).toEqual(["node-1: there is a table, and no pool has natOutgoing"]);
});

test("the server of calls leaves the table to an agent that follows the pools", async () => {
  const { world, host, sockets } = await worldOf();
  const invariant = servedCallsLeaveNat();
  const written = async (author: typeof AGENT, ...pools: readonly (typeof BLUE)[]) => {
    await applyNat(sockets.open(author), pools);
    return invariant.check(world);
  };

  const problem = 'node-1: "calls 2 on node-1" has written the table, of which the agent is the writer';
  expect(await written(SERVER, BLUE)).toEqual([problem]);
  expect(await written(AGENT, BLUE, RED)).toEqual([]);
  expect(await written(OWN, BLUE)).toEqual([]);
  expect(await written(SERVER, BLUE)).toEqual([]);
  expect(await written(SERVER, BLUE, RED)).toEqual([problem]);
  expect(await written(SERVER)).toEqual([problem]);
  host.isNatFollowed = false;
  expect(await written(SERVER, BLUE)).toEqual([]);
});
