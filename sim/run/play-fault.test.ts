import { expect, test } from "bun:test";
import type { FaultAction, Script } from "../script/operation.ts";
import { Cluster } from "./cluster.ts";
import { playFault } from "./play-fault.ts";

const SCRIPT: Script = {
  ...{ seed: 1, datastore: "etcd", flavour: "hostile", calls: "itself", policySetupSeconds: 0, subnets: 1 },
  ...{ nodes: ["node-1"], pools: [], operations: [] },
};
const MINUTE = 60_000;

/** The first begins at a machine, the second at another one of its name, and ends before the first. */
async function machineAfter(first: FaultAction, second: FaultAction) {
  const cluster = new Cluster(SCRIPT);
  await cluster.start();
  playFault(cluster, first);
  cluster.deleteNode("node-1");
  cluster.joinNode("node-1");
  playFault(cluster, second);
  await cluster.scheduler.runUntil(2 * MINUTE);
  return cluster.machines.get("node-1");
}

test("a disturbance of a kernel ends also if one of a former machine of that name ends later", async () => {
  const refusal = { kind: "refuse changes", node: "node-1", probability: 0.3 } as const;
  const machine = await machineAfter({ ...refusal, lasts: MINUTE }, { ...refusal, lasts: 1_000 });

  expect(machine?.node.host.faults.refusals).toBe(0);
});

test("a machine that restarts is on again also if the restart of a former one of that name takes longer", async () => {
  const restart = { kind: "reboot node", node: "node-1" } as const;
  const machine = await machineAfter({ ...restart, lasts: MINUTE }, { ...restart, lasts: 1_000 });

  expect(machine?.isOn).toBe(true);
});
