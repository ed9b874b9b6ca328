import { PluginError } from "../../../errors.ts";
import type { ClusterObjects } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import type { Facts, Obstacle } from "../../engine/facts.ts";
import type { PlannedChange, Step, StepPlan } from "../../engine/step.ts";
import { type LiveConfig, liveConfigs } from "../../live-network-configs.ts";
import { LIST_VERSION, type ListState, listState } from "./raise-list.ts";

interface NetworkConfig extends LiveConfig {
  readonly state: ListState;
}

export const networkConfigStep: Step = {
  name: "network-config",
  title: `Network config with several plugins has CNI version ${LIST_VERSION}`,
  rule: 1,
  why: "a list of plugins needs CNI 0.3.0 or later; with an earlier version runtimes start no pod, or leave out plugins",
  async plan({ objects, facts }): Promise<StepPlan | undefined> {
    const configs = await readConfigs(objects, facts);
    const old = configs.filter(({ state }) => state.kind === "too old");
    const obstacles = configs.filter(({ state }) => state.kind === "unreadable").map(unreadable);
    if (old.length === 0 && obstacles.length === 0) return undefined;
    return {
      step: "network-config",
      changes: old.map(changeOf),
      obstacles,
      notes: [`every plugin of the list has to know CNI ${LIST_VERSION}; those of this product do`],
      estimatedSeconds: 1,
      data: { before: Object.fromEntries(old.map(({ path, text }) => [path, text])) },
    };
  },
  async remaining({ objects, facts }) {
    return (await readConfigs(objects, facts))
      .filter(({ state }) => state.kind === "too old")
      .map(({ what }) => `${what} has several plugins and a CNI version below 0.3.0`);
  },
  async act({ objects, facts, progress }) {
    for (const { what, path, key, text, state } of await readConfigs(objects, facts)) {
      if (state.kind !== "too old") continue;
      await exchange(objects, { path, key, from: text, to: state.raised });
      progress(`${what}: CNI version ${state.version || "none"} is ${LIST_VERSION} now`);
    }
  },
  /** A config that somebody has changed since is not touched. */
  async rollback({ objects, facts }, { data }) {
    const before = isObject(data["before"]) ? data["before"] : {};
    for (const { path, key, text } of await readConfigs(objects, facts)) {
      const former = before[path];
      const raised = typeof former === "string" ? listState(former) : undefined;
      if (typeof former !== "string" || raised?.kind !== "too old" || raised.raised !== text) continue;
      await exchange(objects, { path, key, from: text, to: former });
    }
  },
};

/** Those that an administrator may have edited; the operator renders its own. */
async function readConfigs(
  objects: ClusterObjects,
  { method, namespace }: Pick<Facts, "method" | "namespace">,
): Promise<readonly NetworkConfig[]> {
  if (method.kind !== "manifest") return [];
  const found = await liveConfigs(objects, namespace);
  return found.map((config) => ({ ...config, state: listState(config.text) }));
}

interface Exchange {
  readonly path: string;
  readonly key: string;
  readonly from: string;
  readonly to: string;
}

async function exchange(objects: ClusterObjects, { path, key, from, to }: Exchange): Promise<void> {
  const place = `/data/${key}`;
  const written = await objects.patchJson(path, [
    { op: "test", path: place, value: from },
    { op: "replace", path: place, value: to },
  ]);
  if (written === undefined) throw new PluginError("resource-missing", `Cannot change "${path}": it is gone`);
}

function changeOf({ what, path, state }: NetworkConfig): PlannedChange {
  const version = state.kind === "too old" && state.version !== "" ? state.version : undefined;
  const lines = [
    ...(version === undefined ? [] : [`-  "cniVersion": "${version}",`]),
    `+  "cniVersion": "${LIST_VERSION}",`,
  ];
  return { action: "update", what, path, diff: lines.join("\n") };
}

function unreadable({ what, key }: NetworkConfig): Obstacle {
  return {
    message: `"${key}" of ${what} is not a network config: it is not JSON`,
    remedy: `correct it with kubectl edit; ${LIST_VERSION} is its cniVersion if it has several plugins`,
  };
}
