/** The controllers are killed at random moments while the cluster is at work. */
import { expect } from "bun:test";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import { REMOVALS_ALLOWED_UNTIL } from "../../src/controllers/removals.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { identity } from "../../src/identity.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { allocationsIn } from "../../src/ipam/leaks/allocations.ts";
import { KUBE_CONTROLLERS_CONFIGURATION } from "../../src/model/kinds.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { Churn, handleOf } from "./churn.ts";
import { dropLease, type EtcdSite } from "./etcd-site.ts";

export const KILLS = proofSize({ everyDay: 4, soak: 100 });
const LONGEST_LIFE_MILLISECONDS = 1_200;

/** The calm controllers run already. Returns those of the disturbed place, which run at the end. */
export async function killUnderChurn(site: EtcdSite): Promise<Controllers> {
  const { disturbed } = site;
  await configure(site);
  const seed = Math.floor(Math.random() * 2 ** 31);
  const churn = new Churn(site, seed);
  await churn.start();
  for (let kill = 0; kill < KILLS; kill++) {
    const controllers = startControllers(disturbed.environment);
    // A random moment of its life, not a wait for anything.
    await Bun.sleep(Math.random() * LONGEST_LIFE_MILLISECONDS);
    await controllers.kill("SIGKILL");
    await dropLease(site, disturbed);
  }
  await churn.stop();
  const last = startControllers(disturbed.environment);
  await churn.searchHosts();
  const title = `after ${churn.steps} steps with seed ${seed}`;
  // The controller manager still deletes the pods of deleted namespaces.
  const areReleased = async () => {
    const held = await heldBy(disturbed.store);
    return churn.lost.every((pod) => !held.has(handleOf(pod)));
  };
  await pollUntil(areReleased, `every leaked address to be released ${title}`, 120_000);
  await site.untilAlike(`both datastores to be alike ${title}`);

  const held = await heldBy(disturbed.store);
  expect(churn.pods.map(handleOf).filter((handle) => !held.has(handle))).toEqual([]);
  // Blocks of deleted nodes go when their last address has gone.
  const isTidy = async () => (await ipamCheck(disturbed.endpoint)).includes(": no problems");
  await pollUntil(isTidy, `no problems in the addresses ${title}`, 60_000);
  return last;
}

async function heldBy(store: Datastore): Promise<ReadonlySet<string>> {
  const { blocks } = await readAllRecords(store);
  return new Set(blocks.flatMap(allocationsIn).map(({ handle }) => handle));
}

/** Everything runs, and leaks are released soon. */
async function configure(site: EtcdSite): Promise<void> {
  const period = { reconcilerPeriod: "5m" };
  const node = { ...period, leakGracePeriod: "1s", hostEndpoint: { autoCreate: "Enabled" as const } };
  const controllers = { policy: period, namespace: period, serviceAccount: period, workloadEndpoint: period, node };
  const { codec } = KUBE_CONTROLLERS_CONFIGURATION;
  // While no controllers run, nodes are deleted that have most of the addresses: nobody waits here until that is believed.
  const annotations = { [REMOVALS_ALLOWED_UNTIL]: new Date(Date.now() + 3_600_000).toISOString() };
  const record = codec.make({ name: "default", annotations }, { prometheusMetricsPort: 0, controllers });
  await site.put({ kind: "put", key: CONFIGURATION_KEY, value: codec.write(record) });
}

async function ipamCheck(endpoint: string): Promise<string> {
  const child = Bun.spawn([builtProgram(identity.adminTool), "ipam", "check", "--no-grace"], {
    env: { PATH: process.env["PATH"] ?? "", ETCD_ENDPOINTS: endpoint },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return printed.join("");
}
