/**
 * A cluster in memory for one step of an upgrade: an API, and a datastore in that API or beside it. Backups and notes survive, as
 * they do in a cluster. A run can be killed at a write: the write happens, and nothing after it.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { productMapping } from "../../src/datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { KubeRequest, KubeResponse } from "../../src/kube/api.ts";
import { clusterObjects, type Fields } from "../../src/kube/objects.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import type { UpgradeOptions } from "../../src/upgrade/engine/options.ts";
import type { Step, StepPlan, StepSite } from "../../src/upgrade/engine/step.ts";
import { VERSION } from "../../src/version.ts";
import { startFakeApi } from "./kube-api/fake-api.ts";
import { storeAround } from "./wrapped-store.ts";

class Killed extends Error {}

export interface SitePlan {
  readonly datastore?: "kubernetes" | "etcd";
  readonly storage?: Facts["storage"];
  readonly options?: Partial<UpgradeOptions>;
}

export class StepCluster {
  readonly api = startFakeApi();
  readonly progress: string[] = [];
  /** `PATCH /api/v1/nodes/n1`, `update /vendor/…`: everything that the step has written. */
  readonly writes: string[] = [];
  /** What the rest of the cluster does while the step waits. */
  whileWaiting: () => Promise<void> = async () => {};
  /** Instead of the API. */
  respond: (request: KubeRequest) => KubeResponse | undefined = () => undefined;
  /** After a write of the step to the API. */
  afterWrite: (request: KubeRequest) => Promise<void> = async () => {};
  facts: Facts;
  options: UpgradeOptions;
  private readonly memory = openMemory();
  private readonly saved = new Map<string, string>();
  private notes: Fields = {};
  private time = Date.parse("2026-01-01T00:00:00Z");
  private killAt = Number.POSITIVE_INFINITY;
  private written = 0;
  private marks = 0;

  constructor({ datastore = "kubernetes", storage, options = {} }: SitePlan = {}) {
    this.facts = factsWith({ datastore, storage: storage ?? (datastore === "etcd" ? "etcd" : "current") });
    this.options = { ...OPTIONS, ...options };
  }

  /** Without the step: for what the test itself lays out and looks at. */
  get store(): Datastore {
    return this.facts.datastore === "etcd" ? this.memory : this.openKube(this.api.connect());
  }

  get objects() {
    return clusterObjects(this.api.connect());
  }

  site(): StepSite {
    const client = this.api.connect(async (request, send) => {
      const response = this.respond(request);
      if (response !== undefined) return response;
      if (request.method === "GET") return this.alive(send);
      return this.write(`${request.method} ${request.path}`, async () => {
        const sent = send();
        await this.afterWrite(request);
        return sent;
      });
    });
    const openDatastore = async (): Promise<Datastore> => {
      if (this.facts.datastore === "kubernetes") return this.openKube(client);
      return storeAround(this.memory, {
        read: (wanted) => this.alive(() => this.memory.read(wanted)),
        commit: (changes) =>
          this.write(changes.map((each) => `${each.kind} ${each.key}`).join(", "), () => this.memory.commit(changes)),
        close: async () => {},
      });
    };
    return {
      objects: clusterObjects(client),
      facts: this.facts,
      options: this.options,
      release: {
        ...{ version: VERSION, definitions: [], operatorDefinitions: [], operator: [] },
        manifest: () => ({ settings: [], components: [] }),
      } as unknown as StepSite["release"],
      openDatastore,
      signal: new AbortController().signal,
      backups: {
        read: async (name) => this.saved.get(name),
        save: (name, text) =>
          this.saved.has(name)
            ? Promise.resolve()
            : this.write(`backup ${name}`, async () => void this.saved.set(name, text)),
      },
      stateOf: () => "done",
      notes: {
        read: async () => this.notes,
        write: async (notes) => {
          this.notes = notes;
        },
      },
      progress: (line) => this.progress.push(line),
      now: () => new Date(this.time),
      begunAt: new Date(this.time),
      wait: async (milliseconds) => {
        this.time += milliseconds;
        await this.whileWaiting();
      },
      helm: undefined,
    };
  }

  /** As the engine does it: nothing remains, or act until nothing remains; then it is verified. */
  async run(step: Step, plan: StepPlan): Promise<void> {
    const site = this.site();
    if ((await step.remaining(site, plan)).length === 0) return;
    await step.act(site, plan);
    const remaining = await step.remaining(site, plan);
    if (remaining.length > 0) throw new Error(`remains: ${remaining.join(", ")}`);
    const wrong = (await step.verify?.(site, plan)) ?? [];
    if (wrong.length > 0) throw new Error(`wrong: ${wrong.join(", ")}`);
  }

  /** Whether it was killed at that write; `false`: it ended before. */
  async killedAt(write: number, work: () => Promise<void>): Promise<boolean> {
    [this.killAt, this.written] = [write, 0];
    try {
      await work();
      return false;
    } catch (failure) {
      if (failure instanceof Killed || (failure as Error).cause instanceof Killed) return true;
      throw failure;
    } finally {
      this.killAt = Number.POSITIVE_INFINITY;
      this.written = 0;
    }
  }

  private openKube(client: ReturnType<StepCluster["api"]["connect"]>): Datastore {
    const mappings = productMapping(() => `mark-${++this.marks}`);
    return openKubeStore({ api: client, mappings, close: async () => {} });
  }

  private async alive<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    if (this.written >= this.killAt) throw new Killed();
    return work();
  }

  private async write<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    const result = await this.alive(work);
    this.writes.push(what);
    this.written += 1;
    if (this.written >= this.killAt) throw new Killed();
    return result;
  }
}

const OPTIONS: UpgradeOptions = {
  automaticHostEndpoints: true,
  acceptDefaultAllow: false,
  overwriteLabels: false,
  reviewed: false,
  onConflict: "fail",
  ignoredGroups: [],
  lockSeconds: 0,
  stallSeconds: 60,
};

function factsWith(more: Pick<Facts, "datastore" | "storage">): Facts {
  return {
    ...more,
    method: { kind: "operator" },
    version: "v3.26.0",
    target: VERSION,
    parts: [],
    orchestratorVersion: "v1.30.0",
    nodes: [],
    namespace: "kube-system",
    hasAggregatedApi: false,
    unfinished: [],
    hasApplicationLayerPolicy: true,
    hostEndpoints: [],
    hasUpgradePolicy: true,
    ownedObjects: [],
  };
}
