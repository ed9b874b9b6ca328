/**
 * Plans or applies an upgrade of settings on a real API server, as a process that can be killed:
 *
 *   engine-run.process.ts KUBECONFIG plan|apply|rollback FOLDER [N]     killed at its Nth write, Lease not counted
 *
 * Prints one JSON line for each event. The step "slow" waits until the setting "go" exists.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KubeClient } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { clusterObjects } from "../../src/kube/objects.ts";
import { applyPlan } from "../../src/upgrade/engine/apply.ts";
import { openBackups } from "../../src/upgrade/engine/backups.ts";
import { LedgerStore } from "../../src/upgrade/engine/ledger.ts";
import { makePlan } from "../../src/upgrade/engine/make-plan.ts";
import { rollBack } from "../../src/upgrade/engine/rollback.ts";
import type { Run } from "../../src/upgrade/engine/run.ts";
import { type HeldLease, leasedClient, withRunLease } from "../../src/upgrade/engine/run-lease.ts";
import { decodePlan, encodePlan } from "../../src/upgrade/engine/upgrade-plan.ts";
import { NO_OPTIONS, OPERATOR_FACTS, settingPath, settingStep } from "../support/setting-steps.ts";

const [kubeconfig = "", command = "", folder = "", killedAt = "0"] = process.argv.slice(2);
const now = () => new Date();
const elapsed = () => performance.now();
const signal = new AbortController().signal;
const print = (event: object) => console.log(JSON.stringify(event));

const slow = settingStep("slow", ["slow"]);
const steps = [
  settingStep("first", ["a", "b"]),
  {
    ...slow,
    async act(site, plan) {
      for (let polls = 0; (await site.objects.read(settingPath("go"))) === undefined; polls += 1) {
        if (polls === 0) site.progress("waiting");
        await site.wait(50);
      }
      await slow.act(site, plan);
    },
  } satisfies typeof slow,
  settingStep("last", ["new"]),
];

const means = { environment: {}, warn: () => {}, now, elapsed, program: "vendorctl" };
const client = await openKubeClient({ kubeconfigs: [kubeconfig] }, means);
const planFile = join(folder, "plan.json");
const site = {
  release: { version: OPERATOR_FACTS.target } as Run["site"]["release"],
  openDatastore: () => Promise.reject(),
  signal,
};

if (command === "plan") {
  const objects = clusterObjects(client);
  const planning = { ...site, objects, facts: OPERATOR_FACTS, options: NO_OPTIONS };
  const plan = await makePlan(planning, { steps, run: crypto.randomUUID().slice(0, 8), now: now() });
  writeFileSync(planFile, encodePlan(plan));
} else {
  const identity = `test/${process.pid}`;
  const wait = (milliseconds: number) => Bun.sleep(milliseconds);
  try {
    await withRunLease({ client, identity, now, elapsed, wait, signal, tell: (line) => print({ line }) }, carryOut);
    print({ end: command });
  } catch (failure) {
    print({ failure: (failure as Error).message });
  }
}
await client.close();
process.exit(0);

async function carryOut(lease: HeldLease): Promise<void> {
  const objects = clusterObjects(killing(leasedClient(client, lease)), lease.signal);
  const run: Run = {
    steps,
    lease,
    openDatastore: site.openDatastore,
    site: { ...site, objects, now, begunAt: now(), wait: (milliseconds) => Bun.sleep(milliseconds), helm: undefined },
    ledger: await LedgerStore.open(objects, async () => {}),
    backups: (name) => openBackups({ objects, run: name, copy: async () => {} }),
    report: print,
  };
  if (command === "rollback") await rollBack(run);
  else await applyPlan(run, decodePlan(readFileSync(planFile, "utf8"), planFile));
}

/** As a power failure: after the write is sent, whether it took effect or not, the process is gone. */
function killing(inner: Pick<KubeClient, "request">): Pick<KubeClient, "request"> {
  let writes = 0;
  return {
    async request(request) {
      if (request.method !== "GET") writes += 1;
      const response = inner.request(request);
      if (request.method !== "GET" && writes === Number(killedAt)) {
        await Promise.race([response, Bun.sleep(writes % 2 === 0 ? 0 : 1_000)]);
        process.kill(process.pid, "SIGKILL");
      }
      return response;
    },
  };
}
