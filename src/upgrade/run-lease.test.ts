import { describe, expect, test } from "bun:test";
import { imitateCluster } from "../../test/support/imitated-cluster.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import type { KubeClient } from "../kube/api.ts";
import { type HeldLease, type LeaseMeans, leasedClient, leasedDatastore, withRunLease } from "./run-lease.ts";

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

function meansOn(client: Pick<KubeClient, "request">, time: ReturnType<typeof clock>, identity: string) {
  const told: string[] = [];
  const { elapsed, wait } = time;
  const now = () => new Date(elapsed());
  const signal = new AbortController().signal;
  const means: LeaseMeans = { client, identity, now, elapsed, wait, signal, tell: (line) => told.push(line) };
  return { means, told };
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
    const first = withRunLease(meansOn(client, time, "one").means, () => end.promise);
    await time.run(100);
    const second = withRunLease(meansOn(client, time, "two").means, async () => "never");
    const refused = failureOf(second);
    await time.run(6_000);
    expect(await refused).toMatchObject({
      kind: "resource-in-use",
      message: 'Cannot begin: "one" is upgrading this cluster now',
    });
    end.resolve();
    await time.run(100);
    await first;
    const third = withRunLease(meansOn(client, time, "three").means, async () => "at once");
    await time.run(200);

    expect(await third).toBe("at once");
  });

  test("is taken over from a run that was killed, when it has expired", async () => {
    const [cluster, time] = [imitateCluster(), clock()];
    const spec = { holderIdentity: "killed", leaseDurationSeconds: 15, renewTime: "x" };
    cluster.edit(PATH, { metadata: { name: "vendor-upgrade" }, spec });
    const { means, told } = meansOn(cluster.client, time, "next");
    let startedAt = 0;
    const run = withRunLease(means, async () => {
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
    const ended = failureOf(withRunLease(meansOn({ request }, time, "one").means, async () => "never"));
    await time.run(11_000);

    expect(await Promise.race([ended, Bun.sleep(100).then(() => "goes on")])).toMatchObject({
      kind: "api-unavailable",
      message: expect.stringContaining("connection refused"),
    });
  });

  test("is given back by a run that the user stops", async () => {
    const [cluster, time] = [imitateCluster(), clock()];
    const stop = new AbortController();
    const { means } = meansOn(cluster.client, time, "one");
    const run = withRunLease({ ...means, signal: stop.signal }, async ({ signal }) => {
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

  test("that cannot be renewed in time ends the run, and no write is sent any more", async () => {
    const time = clock();
    let isReachable = true;
    const cluster = imitateCluster({
      beforeWrite() {
        if (!isReachable) throw new Error("connection refused");
      },
    });
    const store = openMemory();
    let held: HeldLease | undefined;
    const run = withRunLease(meansOn(cluster.client, time, "one").means, async (lease) => {
      held = lease;
      await new Promise((_, reject) => lease.signal.addEventListener("abort", () => reject(lease.signal.reason)));
    });
    const ended = failureOf(run);
    await time.run(100);
    if (held === undefined) throw new Error("it has not begun");
    const client = leasedClient(cluster.client, held);
    const datastore = leasedDatastore(store, held);
    const write = { method: "POST", path: "/api/v1/nodes", body: '{"metadata":{"name":"a"}}' } as const;
    expect((await client.request(write)).status).toBe(201);

    isReachable = false;
    await time.run(13_000);
    expect(await ended).toMatchObject({ message: expect.stringContaining("could not be renewed") });
    isReachable = true;

    await expect(client.request({ ...write, body: '{"metadata":{"name":"b"}}' })).rejects.toMatchObject({
      kind: "api-unavailable",
    });
    await expect(datastore.commit([])).rejects.toMatchObject({ kind: "api-unavailable" });
    expect(
      (await client.request({ ...write, query: { dryRun: "All" }, body: '{"metadata":{"name":"c"}}' })).status,
    ).toBe(201);
    expect((await client.request({ method: "GET", path: "/api/v1/nodes/a" })).status).toBe(200);
    expect(cluster.objects.has("/api/v1/nodes/b")).toBe(false);
  });
});
