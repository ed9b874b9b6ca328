import { describe, expect, test } from "bun:test";
import { imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { isTemporary } from "../../kube/failure.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { LedgerStore } from "./ledger.ts";
import { type Run, recordProblem } from "./run.ts";
import { type HeldLease, type LeaseOptions, leasedClient, leasedDatastore, withRunLease } from "./run-lease.ts";

const PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vendor-upgrade";

/** Time passes only in waits, and everybody who waits is woken in the order of time. */
function clock() {
  let time = 0;
  const sleepers: { readonly at: number; readonly wake: () => void }[] = [];
  const wait = async (milliseconds: number, signal?: AbortSignal) => {
    if (signal?.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    sleepers.push({ at: time + milliseconds, wake: resolve });
    signal?.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  };
  const run = async (milliseconds: number) => {
    const end = time + milliseconds;
    for (;;) {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
      sleepers.sort((one, other) => one.at - other.at);
      const next = sleepers[0];
      if (next === undefined || next.at > end) break;
      sleepers.shift();
      time = next.at;
      next.wake();
    }
    time = end;
  };
  return { elapsed: () => time, wait, run };
}

function optionsOn(client: Pick<KubeClient, "request">, time: ReturnType<typeof clock>, identity: string) {
  const told: string[] = [];
  const { elapsed, wait } = time;
  const now = () => new Date(elapsed());
  const signal = new AbortController().signal;
  const options: LeaseOptions = { client, identity, now, elapsed, wait, signal, tell: (line) => told.push(line) };
  return { options, told };
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
}

describe("the Lease of a run", () => {
  test("refuses a second run while the first one renews it, and names the holder", async () => {
    const [{ client }, time] = [imitateCluster(), clock()];
    const end = Promise.withResolvers<void>();
    const first = withRunLease(optionsOn(client, time, "one").options, () => end.promise);
    await time.run(100);
    const second = withRunLease(optionsOn(client, time, "two").options, async () => "never");
    const refused = failureOf(second);
    await time.run(6_000);
    expect(await refused).toMatchObject({
      kind: "resource-in-use",
      message: 'Cannot begin: "one" is upgrading this cluster now',
    });
    end.resolve();
    await time.run(100);
    await first;
    const third = withRunLease(optionsOn(client, time, "three").options, async () => "at once");
    await time.run(200);

    expect(await third).toBe("at once");
  });

  test("is taken over from a run that was killed, when it has expired", async () => {
    const [cluster, time] = [imitateCluster(), clock()];
    const spec = { holderIdentity: "killed", leaseDurationSeconds: 15, renewTime: "x" };
    cluster.edit(PATH, { metadata: { name: "vendor-upgrade" }, spec });
    const { options, told } = optionsOn(cluster.client, time, "next");
    let startedAt = 0;
    const run = withRunLease(options, async () => {
      startedAt = time.elapsed();
    });
    await time.run(20_000);
    await run;

    expect(startedAt).toBeGreaterThanOrEqual(15_000);
    expect(told).toEqual([expect.stringContaining('"killed"')]);
    expect(cluster.objects.get(PATH)?.spec.holderIdentity).toBe("");
  });

  test("that cannot be acquired since the API is unreachable ends the command soon, with the reason", async () => {
    const time = clock();
    const request = () => Promise.reject(new Error("connection refused"));
    const ended = failureOf(withRunLease(optionsOn({ request }, time, "one").options, async () => "never"));
    await time.run(11_000);

    expect(await Promise.race([ended, Bun.sleep(100).then(() => "goes on")])).toMatchObject({
      kind: "api-unavailable",
      message: expect.stringContaining("connection refused"),
    });
  });

  test("is given back by a run that the user stops", async () => {
    const [cluster, time] = [imitateCluster(), clock()];
    const stop = new AbortController();
    const { options } = optionsOn(cluster.client, time, "one");
    const run = withRunLease({ ...options, signal: stop.signal }, async ({ signal }) => {
      await time.wait(60_000, signal);
      signal.throwIfAborted();
    });
    const ended = failureOf(run);
    await time.run(100);
    expect(cluster.objects.get(PATH)?.spec.holderIdentity).toBe("one");
    const reason = new Error("stopped");
    stop.abort(reason);
    await time.run(100);

    expect(await ended).toBe(reason);
    expect(cluster.objects.get(PATH)?.spec.holderIdentity).toBe("");
  });

  /** A run that writes whenever it may, on an API that can be away. */
  function writingRun() {
    const [time, store] = [clock(), openMemory()];
    const reach = { isAway: false };
    const cluster = imitateCluster({
      beforeWrite() {
        if (reach.isAway) throw new Error("connection refused");
      },
    });
    const held = Promise.withResolvers<HeldLease>();
    const end = Promise.withResolvers<void>();
    const { options, told } = optionsOn(cluster.client, time, "one");
    const run = withRunLease(options, async (lease) => {
      held.resolve(lease);
      const aborted = Promise.withResolvers<void>();
      lease.signal.addEventListener("abort", () => aborted.reject(lease.signal.reason));
      await Promise.race([end.promise, aborted.promise]);
      return "complete";
    });
    const ended = run.catch((failure: unknown) => failure);
    const write = async (name: string) =>
      leasedClient(cluster.client, await held.promise).request({
        method: "POST",
        path: "/api/v1/nodes",
        body: JSON.stringify({ metadata: { name } }),
      });
    const take = (holderIdentity: string) => {
      const { metadata, spec } = cluster.objects.get(PATH) ?? {};
      const leaseTransitions = (spec.leaseTransitions ?? 0) + 1;
      const renewTime = `${time.elapsed()}`;
      cluster.edit(PATH, { metadata, spec: { ...spec, holderIdentity, renewTime, leaseTransitions } });
    };
    return { time, cluster, store, reach, held: held.promise, end: end.resolve, told, ended, write, take };
  }

  test("that cannot be renewed in time holds back every write until it is renewed, and the run goes on", async () => {
    const { time, cluster, store, reach, held, end, told, ended, write } = writingRun();
    await time.run(100);
    expect((await write("before")).status).toBe(201);
    const transitions = cluster.objects.get(PATH)?.spec.leaseTransitions;

    reach.isAway = true;
    await time.run(12_000);
    reach.isAway = false;
    const written = failureOf(write("after"));
    const committed = failureOf(leasedDatastore(store, await held).commit([{ kind: "create", key: "/a", value: "1" }]));
    const client = leasedClient(cluster.client, await held);
    const dryRun = { method: "POST", path: "/api/v1/nodes", query: { dryRun: "All" }, body: "{}" } as const;
    expect((await client.request({ ...dryRun, body: '{"metadata":{"name":"c"}}' })).status).toBe(201);
    expect((await client.request({ method: "GET", path: "/api/v1/nodes/before" })).status).toBe(200);

    await time.run(4_000);
    // Whoever wanted to write has to look again first.
    for (const failure of [await written, await committed]) {
      expect(failure).toMatchObject({ kind: "api-unavailable" });
      expect(isTemporary(failure)).toBe(true);
    }
    expect(cluster.objects.has("/api/v1/nodes/after")).toBe(false);
    expect((await store.read([{ kind: "key", key: "/a" }])).answers[0]).toEqual([]);
    expect((await write("after")).status).toBe(201);
    expect(cluster.objects.get(PATH)?.spec).toMatchObject({ holderIdentity: "one", leaseTransitions: transitions });
    expect(told).toEqual([
      expect.stringContaining("connection refused"),
      expect.stringContaining("Lost the lease"),
      expect.stringContaining("Acquired the lease"),
    ]);
    end();
    await time.run(100);
    expect(await ended).toBe("complete");
  });

  test("that another run has acquired meanwhile ends the run, and no write is sent any more", async () => {
    const { time, cluster, store, reach, held, ended, write, take } = writingRun();
    await time.run(100);
    reach.isAway = true;
    await time.run(16_000);
    take("two");
    reach.isAway = false;
    const written = failureOf(write("after"));
    await time.run(4_000);

    expect(await ended).toMatchObject({ kind: "resource-in-use", message: expect.stringContaining('"two"') });
    expect(await written).toMatchObject({ kind: "resource-in-use" });
    await expect(leasedDatastore(store, await held).commit([])).rejects.toMatchObject({ kind: "resource-in-use" });
    expect(cluster.objects.has("/api/v1/nodes/after")).toBe(false);
    expect(cluster.objects.get(PATH)?.spec.holderIdentity).toBe("two");
  });

  test("that is lost while a write is under way ends that write: the client would repeat it for longer", async () => {
    const { time, reach, held, end, ended } = writingRun();
    await time.run(100);
    const sent: number[] = [];
    const slow: Pick<KubeClient, "request"> = {
      async request({ signal }) {
        while (signal?.aborted !== true) {
          sent.push(time.elapsed());
          await time.wait(4_900, signal);
        }
        throw new Error("no response");
      },
    };
    reach.isAway = true;
    await time.run(6_000);
    const failure = failureOf(
      leasedClient(slow, await held).request({ method: "PATCH", path: "/x", attempt: "retry" }),
    );
    await time.run(12_000);

    expect(sent.length).toBeGreaterThan(0);
    // Renewed at 0; another run may acquire it from 15 s on.
    expect(sent.filter((at) => at >= 10_000)).toEqual([]);
    expect(isTemporary(await failure)).toBe(true);
    reach.isAway = false;
    await time.run(4_000);
    end();
    await time.run(100);
    expect(await ended).toBe("complete");
  });

  test("that another run has acquired and given back meanwhile ends the run", async () => {
    const { time, cluster, reach, ended, write, take, told } = writingRun();
    await time.run(100);
    reach.isAway = true;
    await time.run(16_000);
    take("two");
    take("");
    reach.isAway = false;
    const written = failureOf(write("after"));
    await time.run(4_000);

    // Not by itself: it does not acquire it again.
    expect(await ended).toMatchObject({ kind: "resource-in-use", message: expect.stringContaining("another run has") });
    expect(await written).toMatchObject({ kind: "resource-in-use" });
    expect(cluster.objects.has("/api/v1/nodes/after")).toBe(false);
    expect(told.join("\n")).not.toContain("Acquired");
  });

  test.each([
    ["is recorded if it is renewed within seconds", 5_000, "no progress"],
    ["is told all the same if it is not", 30 * 60_000, undefined],
  ])("that is lost when a step fails: the failure %s", async (_, milliseconds, problem) => {
    const { time, cluster, reach, held, told } = writingRun();
    await time.run(100);
    const objects = clusterObjects(leasedClient(cluster.client, await held));
    const ledger = await LedgerStore.open(objects, async () => {});
    const steps = [{ name: "rollout", state: "running" } as const];
    const from = { from: "a", to: "b", startedAt: "x", notes: {}, plans: [] };
    await ledger.write({ run: "r", phase: "running", steps, ...from });
    reach.isAway = true;
    await time.run(12_000);
    const run = { ledger, lease: await held, site: { signal: new AbortController().signal } } as unknown as Run;
    let isTold = false;
    const recorded = recordProblem(run, "rollout", new PluginError("not-ready", "no progress")).then(() => {
      isTold = true;
    });
    await time.run(Math.min(milliseconds, 15_000));
    if (problem !== undefined) reach.isAway = false;
    await time.run(4_000);

    expect(isTold).toBe(true);
    await recorded;
    expect(ledger.current?.steps[0]?.problem).toBe(problem);
    await time.run(5 * 60_000);
    // Each minute.
    const lines = told.filter((line) => line.startsWith("Nothing is written for"));
    expect(lines.length).toBe(problem === undefined ? 5 : 0);
  });

  test("that cannot be renewed for an hour ends the run", async () => {
    const { time, reach, ended, write } = writingRun();
    await time.run(100);
    reach.isAway = true;
    await time.run(59 * 60_000);
    const written = failureOf(write("after"));
    await time.run(2 * 60_000);

    expect(await ended).toMatchObject({ kind: "api-unavailable", message: expect.stringContaining("an hour") });
    expect(await written).toMatchObject({ kind: "api-unavailable" });
  });
});
