import { DATASTORES } from "../datastore/servers.ts";
import { Random } from "../schedule/random.ts";
import { writeHostile } from "./hostile.ts";
import type { Script } from "./operation.ts";
import { writeRealistic } from "./realistic.ts";
import { randomPools, ScriptWriter } from "./script-writer.ts";

/** Every third script is realistic, and the datastores take turns. */
export function generateScript(seed: number): Script {
  const random = new Random(seed).fork("script");
  const nodes = ["node-1", "node-2", "node-3", "node-4"].slice(0, 2 + random.below(3));
  const subnets = random.pick([1, 2] as const);
  const policySetupSeconds = random.pick([0, 10]);
  const calls = random.pick(["itself", "server"] as const);
  const given = { nodes, subnets, policySetupSeconds, calls, pools: randomPools(random, subnets) };
  const flavour = seed % 3 === 0 ? "realistic" : "hostile";
  const writer = new ScriptWriter(random, given);
  if (flavour === "realistic") writeRealistic(writer);
  else writeHostile(writer);
  writer.endWithEnough();
  const datastore = DATASTORES[Math.floor(seed / 3) % DATASTORES.length] ?? "etcd";
  return { seed, datastore, flavour, ...given, operations: writer.operations };
}
