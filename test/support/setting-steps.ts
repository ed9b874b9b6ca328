/** Steps of an upgrade for tests of the engine: they set a value in ConfigMaps, one write each. */
import type { ClusterObjects } from "../../src/kube/objects.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import type { UpgradeOptions } from "../../src/upgrade/engine/options.ts";
import { restoreBackedUp } from "../../src/upgrade/engine/restore-objects.ts";
import type { Step } from "../../src/upgrade/engine/step.ts";

export const SETTINGS_NAMESPACE = "settings";

export const settingPath = (name: string) => `/api/v1/namespaces/${SETTINGS_NAMESPACE}/configmaps/${name}`;

export const setting = (name: string, value: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: SETTINGS_NAMESPACE },
  data: { value },
});

/** ConfigMaps that do not exist are created. */
export function settingStep(name: string, names: readonly string[], more: Partial<Step> = {}): Step {
  const isSet = async (objects: ClusterObjects, each: string) => {
    const object = await objects.read(settingPath(each));
    return (object as { data?: { value?: string } } | undefined)?.data?.value === name;
  };
  return {
    name,
    title: `Set ${name}`,
    rule: 1,
    why: "The test needs it.",
    plan: async () => ({
      step: name,
      changes: names.map((each) => ({ action: "update", what: `ConfigMap ${each}`, path: settingPath(each) })),
      obstacles: [],
      notes: [],
      estimatedSeconds: 1,
      data: { names },
    }),
    async remaining({ objects }) {
      const states = await Promise.all(names.map(async (each) => [each, await isSet(objects, each)] as const));
      return states.flatMap(([each, isDone]) => (isDone ? [] : [`ConfigMap ${each} is old`]));
    },
    async act({ objects, notes }) {
      for (const each of names) {
        await notes.write({ at: each });
        if (!(await isSet(objects, each))) await objects.apply(settingPath(each), setting(each, name), { force: true });
      }
    },
    rollback: async (site) => restoreBackedUp(site, names.map(settingPath)),
    ...more,
  };
}

export const NO_OPTIONS: UpgradeOptions = {
  automaticHostEndpoints: false,
  acceptDefaultAllow: false,
  overwriteLabels: false,
  reviewed: false,
  onConflict: "fail",
  ignoredGroups: [],
  stallSeconds: 60,
};

export const OPERATOR_FACTS: Facts = {
  method: { kind: "operator" },
  datastore: "kubernetes",
  storage: "current",
  version: "v3.26.0",
  target: "v3.29.0",
  parts: [],
  orchestratorVersion: "v1.33.0",
  nodes: [],
  namespace: "kube-system",
  hasAggregatedApi: false,
  unfinished: [],
  hasApplicationLayerPolicy: false,
  hostEndpoints: [],
  hasUpgradePolicy: false,
  ownedObjects: [],
};
