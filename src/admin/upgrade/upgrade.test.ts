import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { NO_OPTIONS, OPERATOR_FACTS } from "../../../test/support/setting-steps.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { openBackups } from "../../upgrade/engine/backups.ts";
import { type Ledger, LedgerStore } from "../../upgrade/engine/ledger.ts";
import { savePlan } from "../../upgrade/engine/run.ts";
import { LeaseTakenOver } from "../../upgrade/engine/run-lease.ts";
import type { StepPlan } from "../../upgrade/engine/step.ts";
import { encodePlan, newPlan, planDigest } from "../../upgrade/engine/upgrade-plan.ts";
import { VERSION } from "../../version.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";
import { tellLock } from "./site.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vendor-upgrade";

const stepPlan = (step: string, more: Partial<StepPlan> = {}): StepPlan => ({
  step,
  changes: [],
  obstacles: [],
  notes: [],
  estimatedSeconds: 1,
  data: {},
  ...more,
});

const planOf = (...steps: readonly StepPlan[]) =>
  newPlan({
    run: "1a2b3c4d",
    madeAt: "2026-01-02T03:00:00.000Z",
    facts: { ...OPERATOR_FACTS, target: VERSION },
    options: NO_OPTIONS,
    observed: {},
    steps,
  });

function toolOn(cluster = imitateCluster()) {
  const client: KubeClient = { ...cluster.client, async *watch() {}, close: async () => {} };
  const vendorctl = (words: string, more: AdminSurroundings = {}) =>
    runInside(words.split(" "), { env: { KUBECONFIG: "/config" }, openKubeClient: async () => client, ...more });
  return { cluster, vendorctl };
}

/** A run in the cluster, as far as it is. */
async function clusterWith(more: Partial<Ledger>) {
  const cluster = imitateCluster();
  const objects = clusterObjects(cluster.client);
  const plan = planOf(
    stepPlan("owner-references"),
    stepPlan("definitions", { cannotBeUndone: "fields of the schema" }),
  );
  await savePlan(openBackups({ objects, run: plan.run, copy: async () => {} }), plan);
  const store = await LedgerStore.open(objects, async () => {});
  await store.write({
    run: plan.run,
    phase: "running",
    plans: [planDigest(plan)],
    from: "v3.26.0",
    to: VERSION,
    startedAt: "2026-01-02T03:00:00.000Z",
    steps: [
      { name: "owner-references", state: "done", endedAt: "2026-01-02T03:01:00.000Z" },
      {
        name: "definitions",
        state: "running",
        startedAt: "2026-01-02T03:01:01.000Z",
        problem: "it is not established",
      },
    ],
    notes: {},
    ...more,
  });
  return cluster;
}

describe("upgrade status", () => {
  test("says that there is none", async () => {
    const { stdout, code } = await toolOn().vendorctl("upgrade status");

    expect([stdout, code]).toEqual(["There is no upgrade in this cluster.\n", EXIT_OK]);
  });

  test("shows the steps, and why it has stopped", async () => {
    const { vendorctl } = toolOn(await clusterWith({}));

    expect((await vendorctl("upgrade status")).stdout).toBe(`\
Upgrade 1a2b3c4d from v3.26.0 to ${VERSION}: not complete; continue: vendorctl upgrade apply, or go back: vendorctl upgrade rollback
Started 2026-01-02T03:00:00.000Z

STEP               STATE     SINCE                      PROBLEM
owner-references   done      2026-01-02T03:01:00.000Z
definitions        running   2026-01-02T03:01:01.000Z   it is not established
`);
  });

  test.each<[string, Partial<Ledger>, string]>([
    ["the failure that stopped it", {}, "run upgrade apply again"],
    ["the failure that stopped its rollback", { phase: "rolling-back" }, "continue it with upgrade apply"],
  ])("advises what %s says, and so does upgrade plan while it is rolled back", async (_, more, advice) => {
    const steps: Ledger["steps"] = [{ name: "definitions", state: "running", problem: "it is used", advice }];
    const { vendorctl } = toolOn(await clusterWith({ ...more, steps }));

    expect((await vendorctl("upgrade status")).stdout.split("\n")[0]).toEndWith(`; ${advice}`);
    if (more.phase === "rolling-back") expect((await vendorctl("upgrade plan")).stderr).toContain(advice);
  });

  test("names the process that carries it out, and one that was killed", async () => {
    const cluster = await clusterWith({});
    const { vendorctl } = toolOn(cluster);
    const renew = (renewTime: string) =>
      cluster.edit(LEASE, { metadata: {}, spec: { holderIdentity: "host/1", leaseDurationSeconds: 15, renewTime } });
    renew("2026-01-02T03:04:00.000000Z");
    expect((await vendorctl("upgrade status")).stdout).toContain(
      "carried out by host/1, which reported 5 s ago (after 15 s without a report it has ended)",
    );
    renew("2026-01-02T03:03:00.000000Z");

    expect((await vendorctl("upgrade status")).stdout).toContain("host/1 has not reported since 2026-01-02T03:03:00");
    expect(JSON.parse((await vendorctl("upgrade status -o json")).stdout)).toMatchObject({
      phase: "running",
      holder: { identity: "host/1", isAlive: false },
    });
  });
});

describe("a lock of the upgrade", () => {
  const LOCKED: Partial<Ledger> = {
    steps: [
      { name: "storage", state: "done", startedAt: "2026-01-02T03:01:00.000Z" },
      { name: "rollout", state: "running", startedAt: "2026-01-02T03:02:00.000Z" },
      { name: "unlock", state: "pending" },
    ],
  };
  const LINE = /^The datastore is LOCKED since 2026-01-02T03:01:00.000Z, about 4 min: no pod starts or ends until /m;

  test("is told by upgrade status", async () => {
    const { vendorctl } = toolOn(await clusterWith(LOCKED));

    expect((await vendorctl("upgrade status")).stdout).toMatch(LINE);
    expect(JSON.parse((await vendorctl("upgrade status -o json")).stdout)).toMatchObject({
      lockedSince: "2026-01-02T03:01:00.000Z",
    });
  });

  test("is followed by nodes that were left, which upgrade status names until they are updated", async () => {
    const steps: Ledger["steps"] = [
      { name: "storage", state: "done" },
      { name: "unlock", state: "done" },
      { name: "remaining-nodes", state: "running" },
    ];
    const { vendorctl } = toolOn(await clusterWith({ steps, notes: { rollout: { left: { two: "down" } } } }));

    expect((await vendorctl("upgrade status")).stdout).toMatch(/^1 node was left by the update \(two\): /m);
  });

  test.each([
    ["upgrade apply", "running"],
    ["upgrade rollback --yes", "rolling-back"],
  ] as const)("is told by %s when it ends before its time", async (command, phase) => {
    const { vendorctl } = toolOn(await clusterWith({ ...LOCKED, phase, plans: ["gone"] }));
    const { stderr, code } = await vendorctl(command);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toMatch(LINE);
  });

  test("is not told by a run that another one has taken over: that one may have ended it", async () => {
    const ledger = await LedgerStore.open(clusterObjects((await clusterWith(LOCKED)).client), async () => {});
    const told = (end: unknown) => {
      const lines: string[] = [];
      tellLock({ now: () => new Date("2026-01-02T03:05:00Z"), stderr: (line) => lines.push(line) }, { ledger }, end);
      return lines.length;
    };

    expect([told(undefined), told(new Error("stopped")), told(new LeaseTakenOver("two"))]).toEqual([1, 1, 0]);
  });

  test("is told by a plan that continues", async () => {
    const { vendorctl } = toolOn(await clusterWith(LOCKED));

    expect((await vendorctl("upgrade plan")).stderr).toMatch(LINE);
  });
});

describe("upgrade rollback", () => {
  test("without --yes tells the limits, and changes nothing", async () => {
    const { cluster, vendorctl } = toolOn(await clusterWith({}));
    const count = cluster.writes.length;
    const { stdout, stderr, code } = await vendorctl("upgrade rollback");

    expect(stdout).toMatch(/^1\. definitions: stays as it is .*\n {3}Cannot be undone: fields of the schema$/m);
    expect(stdout).toMatch(/^2\. owner-references: had nothing to do/m);
    expect(stderr).toContain("--yes");
    expect(code).toBe(EXIT_FAILED);
    expect(cluster.writes.slice(count)).toEqual([]);
  });

  test("is refused if there is nothing to roll back", async () => {
    expect((await toolOn().vendorctl("upgrade rollback --yes")).stderr).toContain("there is no upgrade");
    const { vendorctl } = toolOn(await clusterWith({ phase: "rolled-back" }));
    expect((await vendorctl("upgrade rollback")).stderr).toContain("rolled back already");
  });
});

describe("upgrade apply", () => {
  const refusalOf = async (text: string | undefined, more: Partial<Ledger> | undefined = undefined) => {
    const cluster = more === undefined ? imitateCluster() : await clusterWith(more);
    const { vendorctl } = toolOn(cluster);
    const readFile = async () => text ?? Promise.reject(Object.assign(new Error("missing"), { code: "ENOENT" }));
    const count = cluster.writes.length;
    const { stderr, code } = await vendorctl("upgrade apply", { readFile });
    expect(code).toBe(EXIT_FAILED);
    expect(cluster.writes.slice(count).filter((write) => !write.includes("leases"))).toEqual([]);
    return stderr;
  };

  test("is refused without a plan, with one that was edited, and with one of another release", async () => {
    const plan = planOf(stepPlan("definitions"));
    const other = { ...plan, facts: { ...plan.facts, target: "v3.99.0" } };
    expect(await refusalOf(undefined)).toContain("there is no plan");
    expect(await refusalOf(encodePlan(plan).replace("v3.26.0", "v3.27.0"))).toContain("changed since it was made");
    expect(await refusalOf("{}")).toContain("it is not a plan");
    expect(await refusalOf(encodePlan(other))).toContain(`it is for v3.99.0, and this tool upgrades to ${VERSION}`);
  });

  test("says which file of a plan is missing", async () => {
    const readFile = () => Promise.reject(Object.assign(new Error("ENOENT: no such file"), { code: "ENOENT" }));
    const { stderr, code } = await toolOn().vendorctl("upgrade apply --plan nothere.json", { readFile });

    expect(stderr).toContain('Cannot apply the plan "nothere.json": there is no such file');
    expect(code).toBe(EXIT_FAILED);
  });

  test("continues without a file that others may have changed, unless nothing has begun or the file is named", async () => {
    const readFile = () => Promise.reject(new PluginError("config-invalid", "Cannot trust the file"));
    const outcome = async (words: string, cluster: Awaited<ReturnType<typeof clusterWith>>) =>
      (await toolOn(cluster).vendorctl(words, { readFile })).stderr;

    // Its copy is missing, so that nothing is carried out.
    const begun = await clusterWith({ plans: ["5e6f"] });
    expect(await outcome("upgrade apply", begun)).toContain(
      "Warning: Cannot trust the file; continuing with the plan that is recorded in the cluster",
    );
    expect(await outcome("upgrade apply", begun)).toContain("its plan is not in the cluster any more");
    expect(await outcome("upgrade apply --plan p.json", begun)).not.toContain("continuing");
    expect(await outcome("upgrade apply", imitateCluster())).not.toContain("continuing");
    expect(await outcome("upgrade apply", imitateCluster())).toContain("Cannot trust the file");
  });

  test("is refused with another plan than that of a run that has begun, and while that is rolled back", async () => {
    const other = encodePlan({ ...planOf(stepPlan("definitions")), run: "other" });
    expect(await refusalOf(other, {})).toContain("upgrade 1a2b3c4d has begun with another one");
    expect(await refusalOf(other, { phase: "rolling-back" })).toContain("is being rolled back");
  });

  test("of a complete upgrade, or of a plan without steps, writes nothing but the Lease", async () => {
    const runs = [
      { cluster: await clusterWith({ phase: "complete" }), text: undefined },
      { cluster: imitateCluster(), text: encodePlan(planOf()) },
    ];
    for (const { cluster, text } of runs) {
      const count = cluster.writes.length;
      const readFile = async () => text ?? Promise.reject(Object.assign(new Error("missing"), { code: "ENOENT" }));
      const { stdout, code } = await toolOn(cluster).vendorctl("upgrade apply", { readFile });

      expect([stdout, code]).toEqual([expect.stringContaining("there is nothing to do"), EXIT_OK]);
      expect(cluster.writes.slice(count).every((write) => write.includes("leases"))).toBe(true);
    }
  });
});
