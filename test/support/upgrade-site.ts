/** What a step of an upgrade works with, in memory. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import type { ClusterObjects, Fields } from "../../src/kube/objects.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import type { UpgradeOptions } from "../../src/upgrade/engine/options.ts";
import type { StepSite } from "../../src/upgrade/engine/step.ts";

const FACTS: Facts = {
  method: { kind: "manifest", network: "own" },
  datastore: "kubernetes",
  storage: "current",
  version: "v3.26.1",
  target: "v3.29.0",
  parts: [],
  orchestratorVersion: "v1.34.0",
  nodes: [],
  namespace: "kube-system",
  hasAggregatedApi: false,
  unfinished: [],
  hasApplicationLayerPolicy: false,
  hostEndpoints: [],
  hasUpgradePolicy: false,
  ownedObjects: [],
};

const OPTIONS: UpgradeOptions = {
  automaticHostEndpoints: false,
  acceptDefaultAllow: false,
  overwriteLabels: false,
  reviewed: false,
  onConflict: "fail",
  ignoredGroups: [],
  stallSeconds: 30,
};

interface Given {
  readonly objects: ClusterObjects;
  readonly store?: Datastore;
  readonly facts?: Partial<Facts>;
  readonly options?: Partial<UpgradeOptions>;
  /** Called with each wait, after the clock has moved on. */
  readonly onWait?: () => Promise<void> | void;
}

/** The clock moves only by waits. */
export function upgradeSite({
  objects,
  store,
  facts = {},
  options = {},
  onWait,
}: Given): StepSite & { lines: string[] } {
  const lines: string[] = [];
  const texts = new Map<string, string>();
  let notes: Fields = {};
  let time = Date.parse("2026-01-02T03:04:05Z");
  return {
    objects,
    facts: { ...FACTS, ...facts },
    options: { ...OPTIONS, ...options },
    release: {
      version: FACTS.target,
      definitions: [],
      operatorDefinitions: [],
      operator: [],
      chart: () => ({}),
      manifest: () => ({ settings: [], components: [] }),
    },
    openDatastore: async () => store ?? Promise.reject(new Error("there is no datastore")),
    signal: new AbortController().signal,
    backups: {
      save: async (name, text) => void (texts.has(name) || texts.set(name, text)),
      read: async (name) => texts.get(name),
    },
    notes: {
      read: async () => notes,
      write: async (changed) => {
        notes = changed;
      },
    },
    stateOf: () => "done",
    progress: (line) => void lines.push(line),
    now: () => new Date(time),
    begunAt: new Date(time),
    async wait(milliseconds) {
      time += milliseconds;
      await onWait?.();
    },
    helm: undefined,
    lines,
  };
}
