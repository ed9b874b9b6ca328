import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type ImitatedPlan, imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { NO_OPTIONS, OPERATOR_FACTS, setting, settingPath, settingStep } from "../../../test/support/setting-steps.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { OtherCluster, recordCluster } from "../../ipam/confirm-cluster.ts";
import type { KubeRequest } from "../../kube/api.ts";
import { KubeFailure } from "../../kube/failure.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { clusterInformation } from "../../model/cluster-information.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { applyPlan } from "./apply.ts";
import { openBackups } from "./backups.ts";
import { adviceOf, type Ledger, LedgerStore } from "./ledger.ts";
import { makePlan } from "./make-plan.ts";
import { planRollback, rollBack } from "./rollback.ts";
import { type Run, type RunEvent, readPlan } from "./run.ts";
import type { PlanningSite, Step } from "./step.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";
import { verifyRun } from "./verify.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const STEPS = [settingStep("first", ["a", "b"]), settingStep("second", ["c", "new"]), settingStep("third", ["a"])];
const OBJECTS = Object.fromEntries(["a", "b", "c"].map((name) => [settingPath(name), setting(name, "old")]));

function siteOn(plan: ImitatedPlan = {}, steps: readonly Step[] = STEPS) {
  const cluster = imitateCluster({ objects: OBJECTS, ...plan });
  const objects = clusterObjects(cluster.client);
  const events: RunEvent[] = [];
  const copies = new Map<string, string>();
  let time = NOW.getTime();
  const wait = async (milliseconds: number) => {
    time += milliseconds;
  };
  const site = {
    objects,
    release: { version: OPERATOR_FACTS.target } as PlanningSite["release"],
    openDatastore: () => Promise.reject(new Error("there is none")),
    signal: new AbortController().signal,
  };
  /** Lost when the API is away for 10 s, and renewed when it is back. */
  const outage = { from: 0, to: 0 };
  const away = () => {
    if (time < outage.from || time >= outage.to) return;
    const silent = { stage: "connect", effect: "none", cure: "moment", advice: "" } as const;
    throw new PluginError("api-unavailable", "no response", { cause: new KubeFailure(silent, "no response") });
  };
  const lease: Run["lease"] = {
    async whenHeld() {
      if (time < outage.from + 10_000 || time >= outage.to) return "held";
      time = outage.to;
      return "again";
    },
    async isHeldWithin(milliseconds) {
      if (time < outage.from + 10_000 || time >= outage.to) return true;
      time = Math.min(time + milliseconds, outage.to);
      return time >= outage.to;
    },
  };
  const openRun = async (): Promise<Run> => ({
    steps,
    lease,
    openDatastore: site.openDatastore,
    site: { ...site, now: () => new Date(time), begunAt: NOW, wait, helm: undefined },
    ledger: await LedgerStore.open(objects, async (text) => void copies.set("ledger", text)),
    backups: (run) =>
      openBackups({ objects, run, copy: async (name, text) => void copies.set(name, text), partBytes: 64 }),
    report: (event) => events.push(event),
  });
  const makePlanHere = async (): Promise<UpgradePlan> => {
    const { ledger, backups } = await openRun();
    const { current } = ledger;
    const earlier = current && { ledger: current, plan: await readPlan(backups(current.run), current) };
    const request = { steps, run: "1234", now: NOW, ...(earlier === undefined ? {} : { earlier }) };
    return makePlan({ ...site, facts: OPERATOR_FACTS, options: NO_OPTIONS }, request);
  };
  return {
    cluster,
    events,
    copies,
    openRun,
    /** From now on. */
    isAwayFor: (milliseconds: number) => Object.assign(outage, { from: time, to: time + milliseconds }),
    away,
    plan: makePlanHere,
    apply: async (given?: UpgradePlan) => applyPlan(await openRun(), given),
    rollBack: async () => rollBack(await openRun()),
    ledger: async () => (await openRun()).ledger.current,
  };
}

/** Without versions and managers, which depend on the number of writes. */
function contents(objects: ReadonlyMap<string, { metadata?: object }>): object {
  const entries = [...objects].map(([path, object]) => {
    const { name, namespace, labels, annotations } = { ...object.metadata } as Record<string, unknown>;
    return [path, { ...object, metadata: { name, namespace, labels, annotations } }] as const;
  });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Nothing catches it: the process does nothing more. */
class Killed extends Error {}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
}

describe("an upgrade", () => {
  test("carries out the steps in their order, with backups before the first write, and records it", async () => {
    const site = siteOn();
    const plan = await site.plan();
    expect(site.cluster.writes).toEqual([]);
    await site.apply(plan);

    expect(site.cluster.objects.get(settingPath("a"))?.data).toEqual({ value: "third" });
    expect(site.cluster.objects.get(settingPath("new"))?.data).toEqual({ value: "second" });
    const firstChange = site.cluster.writes.findIndex((write) => write.includes("/namespaces/settings/"));
    const lastBackup = site.cluster.writes.findLastIndex((write) => write.endsWith("/secrets"));
    const ledgerCreated = site.cluster.writes.indexOf("POST /api/v1/namespaces/kube-system/configmaps");
    expect([lastBackup, ledgerCreated, firstChange]).toEqual([lastBackup, lastBackup + 1, expect.any(Number)]);
    expect(firstChange).toBeGreaterThan(ledgerCreated);
    expect((await site.ledger())?.phase).toBe("complete");
    expect((await site.ledger())?.steps.map(({ state }) => state)).toEqual(["done", "done", "done"]);
    expect(JSON.parse(site.copies.get("ledger") ?? "")).toEqual(await site.ledger());
  });

  test("of an etcd that is recorded for another cluster is refused before anything is written, until the move is confirmed", async () => {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-system" } };
    const path = "/api/v1/namespaces/kube-system";
    const site = siteOn({ objects: { ...OBJECTS, [path]: namespace } });
    const uid = site.cluster.objects.get(path)?.metadata.uid;
    const store = openMemory();
    const information = clusterInformation.make({ name: "default" }, { kubeSystemUID: "another" });
    const key = CLUSTER_INFORMATION.key({ name: "default" });
    await store.commit([{ kind: "put", key, value: clusterInformation.write(information) }]);
    const made = await site.plan();
    const plan: UpgradePlan = { ...made, facts: { ...made.facts, datastore: "etcd", storage: "etcd" } };
    const apply = async () => applyPlan({ ...(await site.openRun()), openDatastore: async () => store }, plan);

    const refusal = await rejectionOf(apply);
    expect(refusal).toBeInstanceOf(OtherCluster);
    expect(refusal).toMatchObject({
      message: expect.stringContaining(`it is that of cluster "another", and this is "${uid}"`),
      details: expect.stringContaining("datastore adopt-cluster"),
    });
    expect(site.cluster.writes).toEqual([]);

    await recordCluster(store, uid);
    expect(await apply()).toBe("applied");
  });

  test("applied twice, it writes nothing the second time", async () => {
    const site = siteOn();
    const plan = await site.plan();
    await site.apply(plan);
    const count = site.cluster.writes.length;
    await site.apply(plan);

    expect(site.cluster.writes.slice(count)).toEqual([]);
  });

  test("killed at any write, before or after it took effect, and run again, it ends as if undisturbed", async () => {
    const undisturbed = siteOn();
    await undisturbed.apply(await undisturbed.plan());
    const total = undisturbed.cluster.writes.length;
    expect(total).toBeGreaterThan(10);

    for (const moment of ["beforeWrite", "afterWrite"] as const) {
      for (let last = 0; last < total; last += 1) {
        let count = 0;
        let isAlive = true;
        const kill = () => {
          count += 1;
          if (isAlive && count > last) throw new Killed();
        };
        const site = siteOn({ [moment]: kill });
        const plan = await site.plan();
        expect(await failureOf(site.apply(plan))).toBeInstanceOf(Killed);
        isAlive = false;
        await site.apply(plan);

        expect(contents(site.cluster.objects)).toEqual(contents(undisturbed.cluster.objects));
      }
    }
  });

  test("killed at many moments of one run, it ends as if undisturbed", async () => {
    const undisturbed = siteOn();
    await undisturbed.apply(await undisturbed.plan());
    const gaps = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(gaps, fc.boolean(), async (lives, isBefore) => {
        let left = Number.POSITIVE_INFINITY;
        const kill = () => {
          left -= 1;
          if (left < 0) throw new Killed();
        };
        const site = siteOn(isBefore ? { beforeWrite: kill } : { afterWrite: kill });
        const plan = await site.plan();
        for (const writes of lives) {
          left = writes;
          await failureOf(site.apply(plan));
        }
        left = Number.POSITIVE_INFINITY;
        if ((await site.ledger())?.phase !== "complete") await site.apply(plan);

        expect(contents(site.cluster.objects)).toEqual(contents(undisturbed.cluster.objects));
      }),
      { numRuns: 50 },
    );
  });

  test("continues without the file of the plan", async () => {
    let isKilled = false;
    const kill = ({ path }: KubeRequest) => {
      if (isKilled || path !== settingPath("b")) return;
      isKilled = true;
      throw new Killed();
    };
    const site = siteOn({ beforeWrite: kill });
    await failureOf(site.apply(await site.plan()));
    await site.apply();

    expect((await site.ledger())?.phase).toBe("complete");
  });

  test("rolled back, everything is as it was, and each limit is told before", async () => {
    const site = siteOn();
    const before = contents(site.cluster.objects);
    await site.apply(await site.plan());
    const { steps } = await planRollback(await site.openRun());
    await site.rollBack();

    expect(steps.map(({ step, action }) => `${action} ${step}`)).toEqual(["undo third", "undo second", "undo first"]);
    const { x } = Object.groupBy(Object.entries(contents(site.cluster.objects)), ([path]) =>
      path.includes("/namespaces/settings/") ? "x" : "other",
    );
    expect(Object.fromEntries(x ?? [])).toEqual(before as Record<string, unknown>);
    expect((await site.ledger())?.phase).toBe("rolled-back");
  });

  test("a rollback leaves alone what a step found done already", async () => {
    const unexpected = async () => Promise.reject(new Error("it is rolled back"));
    const site = siteOn({}, [settingStep("old", ["a"], { rollback: unexpected }), settingStep("new", ["b"])]);
    await site.apply(await site.plan());
    const { steps } = await planRollback(await site.openRun());
    await site.rollBack();

    expect(steps.map(({ step, action }) => `${action} ${step}`)).toEqual(["undo new", "nothing old"]);
    expect(site.cluster.objects.get(settingPath("b"))?.data).toEqual({ value: "old" });
  });

  test("a rollback is refused before the first write if a step cannot go back any more", async () => {
    const obstacle = { message: "addresses were assigned since", remedy: "continue" };
    const steps = [
      settingStep("first", ["a"], { rollbackObstacles: async () => [obstacle] }),
      settingStep("second", ["b"]),
    ];
    const site = siteOn({}, steps);
    await site.apply(await site.plan());
    const before = site.cluster.writes.length;

    // The upgrade is complete: nothing can be continued.
    const remedy = expect.stringContaining("is complete");
    expect((await planRollback(await site.openRun())).obstacles).toEqual([{ ...obstacle, remedy }]);
    expect((await rejectionOf(() => site.rollBack())).kind).toBe("resource-in-use");
    expect(site.cluster.writes.length).toBe(before);
  });

  test("a rollback that cannot be completed any more gives way to the upgrade, which ends as if undisturbed", async () => {
    const obstacle = { message: "addresses were assigned since", remedy: "continue the upgrade with upgrade apply" };
    const whole = siteOn();
    await whole.apply(await whole.plan());
    let isUsed = false;
    const first = settingStep("first", ["a", "b"], {
      rollbackObstacles: async () => (isUsed ? [obstacle] : []),
      rollback: async () => {
        isUsed = true;
        throw new PluginError("resource-in-use", obstacle.message, { details: obstacle.remedy });
      },
    });
    const site = siteOn({}, [first, ...STEPS.slice(1)]);
    await site.apply(await site.plan());
    expect((await rejectionOf(() => site.rollBack())).message).toBe(obstacle.message);
    expect((await site.ledger())?.steps.map(({ state }) => state)).toEqual([
      "rolling-back",
      "rolled-back",
      "rolled-back",
    ]);
    const advice = async () => adviceOf((await site.ledger()) as Ledger);
    expect(await advice()).toBe(obstacle.remedy);

    expect((await rejectionOf(() => site.rollBack())).details).toBe(obstacle.remedy);
    expect(await advice()).toBe(obstacle.remedy);
    expect(await site.apply()).toBe("applied");
    expect(await advice()).toBe("");
    expect((await site.ledger())?.steps.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect((await site.ledger())?.phase).toBe("complete");
    expect((await site.ledger())?.steps.map(({ state }) => state)).toEqual(["done", "done", "done"]);
    for (const name of ["a", "b", "c", "new"]) {
      const path = settingPath(name);
      expect(site.cluster.objects.get(path)?.data).toEqual(whole.cluster.objects.get(path)?.data);
    }
  });

  test("a plan is refused for another cluster, and when its run was rolled back", async () => {
    const namespace = { "/api/v1/namespaces/kube-system": { metadata: { name: "kube-system" } } };
    // The order in which objects are stored decides their UIDs.
    const site = siteOn({ objects: { ...namespace, ...OBJECTS } });
    const other = siteOn({ objects: { ...OBJECTS, ...namespace } });
    const plan = await site.plan();
    expect((await rejectionOf(async () => other.apply(plan))).message).toContain("planned for another cluster");
    expect(other.cluster.writes).toEqual([]);

    await site.apply(plan);
    expect((await rejectionOf(async () => other.apply(plan))).message).toContain("planned for another cluster");
    await site.rollBack();
    expect((await rejectionOf(async () => site.apply(plan))).message).toBe(
      "Cannot apply the plan: upgrade 1234 was rolled back",
    );
  });

  test("a rollback that is killed at any write continues", async () => {
    const whole = siteOn();
    await whole.apply(await whole.plan());
    const start = whole.cluster.writes.length;
    await whole.rollBack();
    const total = whole.cluster.writes.length - start;

    for (let last = 0; last < total; last += 1) {
      let left = Number.POSITIVE_INFINITY;
      const site = siteOn({
        afterWrite() {
          left -= 1;
          if (left === -1) throw new Killed();
        },
      });
      await site.apply(await site.plan());
      left = last;
      expect(await failureOf(site.rollBack())).toBeInstanceOf(Killed);
      if ((await site.ledger())?.phase !== "rolled-back") {
        expect(await failureOf(site.apply())).toMatchObject({ kind: "resource-in-use" });
        await site.rollBack();
      }

      expect(contents(site.cluster.objects)).toEqual(contents(whole.cluster.objects));
    }
  });
});

describe("the ledger", () => {
  const ledger = {
    run: "1",
    phase: "running",
    plans: [],
    from: "",
    to: "",
    startedAt: "",
    steps: [],
    notes: {},
  } as const;

  test("is written once if the response was lost", async () => {
    let losses = 1;
    const lose = () => {
      losses -= 1;
      if (losses === 0) throw new PluginError("api-unavailable", "the connection was reset");
    };
    const { client, writes } = imitateCluster({ afterWrite: lose });
    const store = await LedgerStore.open(clusterObjects(client), async () => {});
    await store.write(ledger);
    losses = 1;
    await store.write({ ...ledger, phase: "complete" });
    await store.write({ ...ledger, phase: "complete" });

    expect(store.current?.phase).toBe("complete");
    expect(writes).toHaveLength(2);
  });

  test("is not written by a process that another one has overtaken", async () => {
    const { client } = imitateCluster();
    const open = () => LedgerStore.open(clusterObjects(client), async () => {});
    const first = await open();
    await first.write(ledger);
    const second = await open();
    await second.write({ ...ledger, phase: "complete" });

    expect(await failureOf(first.write({ ...ledger, phase: "rolling-back" }))).toMatchObject({
      kind: "resource-changed",
    });
    expect((await open()).current?.phase).toBe("complete");
  });
});

describe("a plan", () => {
  test("is refused if the cluster has changed since, with what changed and by whom", async () => {
    const site = siteOn();
    const plan = await site.plan();
    site.cluster.edit(settingPath("c"), { data: { more: "1" } });
    site.cluster.objects.delete(settingPath("b"));

    expect(await failureOf(site.apply(plan))).toMatchObject({
      kind: "resource-changed",
      message: expect.stringMatching(/ConfigMap b has been deleted; ConfigMap c has been changed by kubectl-edit/),
    });
    expect(site.cluster.writes).toEqual([]);
  });

  test("is refused in the middle if objects of a later step have changed, and a new one continues the run", async () => {
    const disturbing = settingStep("first", ["a", "b"], {
      verify: async () => {
        if (site.cluster.objects.get(settingPath("c"))?.data.more === undefined) {
          site.cluster.edit(settingPath("c"), { data: { more: "1" } });
        }
        return [];
      },
    });
    const site = siteOn({}, [disturbing, ...STEPS.slice(1)]);
    const plan = await site.plan();

    expect(await failureOf(site.apply(plan))).toMatchObject({ kind: "resource-changed" });
    expect((await site.ledger())?.steps.map(({ state }) => state)).toEqual(["done", "pending", "pending"]);
    const next = await site.plan();
    expect(next.run).toBe(plan.run);
    await site.apply(next);

    expect(site.cluster.objects.get(settingPath("c"))?.data).toEqual({ value: "second", more: "1" });
    await site.rollBack();
    expect(site.cluster.objects.get(settingPath("a"))?.data).toEqual({ value: "old" });
    expect(site.cluster.objects.get(settingPath("c"))?.data).toEqual({ value: "old", more: "1" });
  });

  test("is refused if an object was edited while its step was interrupted, until a new plan accepts it", async () => {
    const whole = settingStep("first", ["a", "b"]);
    let isKilled = false;
    const killed = settingStep("first", ["a", "b"], {
      async act(site, plan) {
        if (isKilled) return whole.act(site, plan);
        isKilled = true;
        await site.objects.apply(settingPath("a"), setting("a", "first"), { force: true });
        throw new Killed();
      },
    });
    const site = siteOn({}, [killed]);
    expect(await failureOf(site.apply(await site.plan()))).toBeInstanceOf(Killed);
    site.cluster.edit(settingPath("b"), { data: { value: "repaired" } });

    expect(await failureOf(site.apply())).toMatchObject({
      kind: "resource-changed",
      message: expect.stringMatching(/ConfigMap b has been changed by kubectl-edit/),
    });
    expect(site.cluster.objects.get(settingPath("b"))?.data).toEqual({ value: "repaired" });
    await site.apply(await site.plan());
    expect(site.cluster.objects.get(settingPath("b"))?.data).toEqual({ value: "first" });
  });

  test("with obstacles is refused, and names them", async () => {
    const blocked = settingStep("first", ["a"]);
    const steps: readonly Step[] = [
      {
        ...blocked,
        plan: async (site) => {
          const plan = await blocked.plan(site);
          return plan && { ...plan, obstacles: [{ message: "two edits conflict", remedy: "--on-conflict" }] };
        },
      },
    ];
    const site = siteOn({}, steps);

    expect(await failureOf(site.apply(await site.plan()))).toMatchObject({
      message: expect.stringContaining("two edits conflict"),
      details: "--on-conflict",
    });
    expect(site.cluster.writes).toEqual([]);
  });
});

describe("a step", () => {
  test("that is wrong afterwards stops the upgrade before the next one", async () => {
    const steps = [settingStep("first", ["a"], { verify: async () => ["a pod crashes"] }), ...STEPS.slice(1)];
    const site = siteOn({}, steps);

    expect(await failureOf(site.apply(await site.plan()))).toMatchObject({
      message: expect.stringContaining("a pod crashes"),
    });
    expect(site.cluster.objects.get(settingPath("c"))?.data).toEqual({ value: "old" });
    expect((await site.ledger())?.steps[0]).toMatchObject({
      state: "running",
      problem: expect.stringContaining("crashes"),
    });
  });

  test("is repeated while the API does not respond, but not for ever", async () => {
    const silent = { stage: "request", effect: "unknown", cure: "wait", advice: "" } as const;
    let silences = 3;
    const steps = [
      settingStep("first", ["a"], {
        async verify() {
          silences -= 1;
          if (silences < 0) return [];
          throw new PluginError("api-unavailable", "no response", { cause: new KubeFailure(silent, "no response") });
        },
      }),
    ];
    const site = siteOn({}, steps);
    await site.apply(await site.plan());
    expect(site.events.filter(({ kind }) => kind === "progress")).toHaveLength(3);
    expect(site.events.at(-1)).toMatchObject({ outcome: "changed" });
    silences = 10;
    const other = siteOn({}, steps);

    expect(await failureOf(other.apply(await other.plan()))).toMatchObject({ kind: "api-unavailable" });
  });

  test("is repeated if the server, or a load balancer before it, cannot carry out a request", async () => {
    const statuses = [502, 429, 503];
    const steps = [
      settingStep("first", ["a"], {
        async verify() {
          const status = statuses.pop();
          if (status !== undefined) requireOk({ status, text: "not now" }, { method: "GET", path: settingPath("a") });
          return [];
        },
      }),
    ];
    const site = siteOn({}, steps);

    expect(await site.apply(await site.plan())).toBe("applied");
  });

  test("goes on after the API was away for minutes, as soon as the Lease is renewed", async () => {
    const verify = async () => {
      site.away();
      return [];
    };
    const site = siteOn({}, [settingStep("first", ["a"], { verify })]);
    const plan = await site.plan();
    site.isAwayFor(5 * 60_000);

    expect(await site.apply(plan)).toBe("applied");
    expect(site.events.filter(({ kind }) => kind === "progress")).toHaveLength(4);
  });

  test("is undone although the API is away for minutes meanwhile", async () => {
    let undone = 0;
    const inner = settingStep("first", ["a"]);
    const first: Step = {
      ...inner,
      async rollback(at, plan) {
        if (undone === 0) site.isAwayFor(5 * 60_000);
        undone += 1;
        site.away();
        await inner.rollback?.(at, plan);
      },
    };
    const site = siteOn({}, [first, settingStep("second", ["c"])]);
    await site.apply(await site.plan());
    await site.rollBack();

    expect((await site.ledger())?.phase).toBe("rolled-back");
    expect(undone).toBeGreaterThan(1);
    expect(site.cluster.objects.get(settingPath("a"))?.data).toEqual({ value: "old" });
  });

  test("that works for long is not stopped by the API's fifth silence", async () => {
    const silent = { stage: "request", effect: "unknown", cure: "wait", advice: "" } as const;
    let silences = 10;
    const long = settingStep("first", ["a"], {
      async verify({ wait }) {
        await wait(120_000);
        silences -= 1;
        if (silences < 0) return [];
        throw new PluginError("api-unavailable", "no response", { cause: new KubeFailure(silent, "no response") });
      },
    });
    const site = siteOn({}, [long]);

    expect(await site.apply(await site.plan())).toBe("applied");
  });

  test("that is not done after it has acted stops the upgrade", async () => {
    const site = siteOn({}, [settingStep("first", ["a"], { act: async () => {} })]);

    expect(await failureOf(site.apply(await site.plan()))).toMatchObject({ kind: "not-ready" });
  });

  test("that cannot be checked is reported by verify, and the others are checked", async () => {
    let isServed = true;
    const failing = async () => {
      if (!isServed) throw new PluginError("resource-missing", "there is no such kind");
      return [];
    };
    const site = siteOn({}, [settingStep("first", ["a"], { verify: failing }), ...STEPS.slice(1, 2)]);
    await site.apply(await site.plan());
    isServed = false;

    expect((await verifyRun(await site.openRun())).map(({ problems }) => problems)).toEqual([
      ["it cannot be checked: there is no such kind"],
      [],
    ]);
  });

  test("is reported by verify when somebody undoes it later", async () => {
    const site = siteOn({}, STEPS.slice(0, 2));
    await site.apply(await site.plan());
    expect((await verifyRun(await site.openRun())).flatMap(({ problems }) => problems)).toEqual([]);
    site.cluster.edit(settingPath("c"), { data: { value: "old" } });

    const results = await verifyRun(await site.openRun());
    expect(results.map(({ problems }) => problems)).toEqual([[], ["not done: ConfigMap c is old"]]);
  });
});
