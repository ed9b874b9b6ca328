import { describe, expect, test } from "bun:test";
import { imitateCluster } from "../../../../test/support/imitated-cluster.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { MemoryTable } from "../../../datastore/memory/table.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import { variantObjects } from "../../../release/manifests/variants.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import type { Facts } from "../../engine/facts.ts";
import { readObjects } from "../../engine/observe-objects.ts";
import { encodeObjects, OBJECTS_BACKUP } from "../../engine/restore-objects.ts";
import type { Step, StepPlan, StepSite } from "../../engine/step.ts";
import { type StockVariant, stockManifest } from "../../published/stock-manifest.ts";
import { formerObjectsStep } from "../former-objects/step.ts";
import { manifestStep } from "./step.ts";

const TARGET = "v3.29.0";
const STEPS = [manifestStep, formerObjectsStep];
/** `stride`: killed at every so many writes. */
const LAYOUTS = [
  { version: "v3.26.4", datastore: "kubernetes", network: "own", stride: 4 },
  { version: "v3.22.5", datastore: "etcd", network: "other", stride: 1 },
] as const;

class Killed extends Error {}

type Layout = StockVariant & { readonly version: string };

interface Planned {
  readonly plans: ReadonlyMap<Step, StepPlan>;
  readonly backup: string;
}

/** A cluster with the manifest of an earlier release; the process ends at one of the writes. */
async function layOut({ version, ...variant }: Layout, planned?: Planned) {
  const stock = structuredClone((await stockManifest(version, variant)) ?? []);
  for (const { data } of stock as unknown as { data?: Record<string, string> }[]) {
    if (data?.["etcd_endpoints"] !== undefined) data["etcd_endpoints"] = "http://10.0.0.1:2379";
    if (data?.["veth_mtu"] !== undefined) data["veth_mtu"] = "1400";
  }
  let writesLeft = Number.POSITIVE_INFINITY;
  const cluster = imitateCluster({
    objects: Object.fromEntries(stock.map((object) => [objectPath(object), object])),
    beforeWrite: () => {
      if (writesLeft-- <= 0) throw new Killed();
    },
  });
  const table = new MemoryTable();
  const saved = new Map<string, string>();
  const facts = {
    method: { kind: "manifest", network: variant.network },
    storage: "current",
    namespace: "kube-system",
    orchestratorVersion: "v1.34.0",
  };
  const site = {
    objects: clusterObjects(cluster.client),
    facts: { ...facts, datastore: variant.datastore, version, target: TARGET, nodes: [] } as unknown as Facts,
    options: { onConflict: "fail", stallSeconds: 1 },
    release: { version: TARGET, manifest: (wanted: StockVariant) => variantObjects(wanted, TARGET) },
    openDatastore: async () => openMemory(table),
    signal: new AbortController().signal,
    backups: {
      save: async (name: string, text: string) => void saved.set(name, text),
      read: async (name: string) => saved.get(name),
    },
    progress: () => {},
    now: () => new Date("2026-01-02T03:04:05Z"),
    begunAt: new Date("2026-01-02T03:04:05Z"),
    wait: async () => {},
  } as unknown as StepSite;
  const { plans, backup } = planned ?? (await planAll(site));
  saved.set(OBJECTS_BACKUP, backup);
  const apply = async () => {
    for (const [step, plan] of plans) {
      if ((await step.remaining(site, plan)).length === 0) continue;
      await step.act(site, plan);
      expect(await step.remaining(site, plan)).toEqual([]);
    }
  };
  const rollback = async () => {
    for (const [step, plan] of [...plans].toReversed()) await step.rollback?.(site, plan);
  };
  /** What is stored, without what differs between any two runs. */
  const content = () =>
    Object.fromEntries(
      [...cluster.objects].map(([path, object]) => {
        const { uid: _, resourceVersion: _version, managedFields: _managers, ...metadata } = object.metadata;
        return [path, { ...object, metadata }];
      }),
    );
  const killedAfter = async (writes: number, work: () => Promise<void>) => {
    writesLeft = writes;
    const failure = await work().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    writesLeft = Number.POSITIVE_INFINITY;
    if (failure !== undefined && !(failure instanceof Killed)) throw failure;
    return failure !== undefined;
  };
  return { cluster, planned: { plans, backup }, apply, rollback, content, killedAfter };
}

async function planAll(site: StepSite): Promise<Planned> {
  const plans = new Map<Step, StepPlan>();
  for (const step of STEPS) {
    const plan = await step.plan(site);
    if (plan !== undefined) plans.set(step, plan);
  }
  const paths = [...plans.values()].flatMap(({ changes }) => changes.flatMap(({ path }) => path ?? []));
  return { plans, backup: encodeObjects(await readObjects(site.objects, paths)) };
}

describe.each(LAYOUTS)("the manifest of $version, $network on $datastore", ({ stride, ...layout }) => {
  test("is upgraded once: a second time nothing is written", async () => {
    const { cluster, planned, apply } = await layOut(layout);
    for (const plan of planned.plans.values()) expect(plan.obstacles).toEqual([]);
    await apply();
    const { length } = cluster.writes;
    await apply();

    expect(cluster.writes).toHaveLength(length);
  });

  test("goes back without policies that could refuse the earlier agents", async () => {
    const { cluster, apply, rollback } = await layOut(layout);
    await apply();
    const { length } = cluster.writes;
    await rollback();
    const back = cluster.writes.slice(length);
    const last = back.findLastIndex((write) => write.includes("/validatingadmissionpolic"));
    const agents = back.findIndex((write) => write.includes("/daemonsets/"));

    expect(last).toBeGreaterThan(-1);
    expect(last).toBeLessThan(agents);
  });

  test("killed at any write and started again, it ends as if it had not been; so does going back", async () => {
    const undisturbed = await layOut(layout);
    const before = undisturbed.content();
    await undisturbed.apply();
    const after = undisturbed.content();
    await undisturbed.rollback();
    const back = undisturbed.content();

    expect(back).toEqual(before);
    for (let writes = 0; ; writes += stride) {
      const disturbed = await layOut(layout, undisturbed.planned);
      const wasKilled = await disturbed.killedAfter(writes, disturbed.apply);
      await disturbed.apply();
      expect(disturbed.content()).toEqual(after);
      await disturbed.killedAfter(writes, disturbed.rollback);
      await disturbed.rollback();
      expect(disturbed.content()).toEqual(before);
      if (!wasKilled) break;
    }
  }, 60_000);
});
