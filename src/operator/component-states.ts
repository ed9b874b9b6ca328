/** How each component is, from what the operator follows. Pure. */
import { identity } from "../identity.ts";
import { tokenBindingProblem } from "../kube/server-version.ts";
import type { IPPool } from "../model/ip-pool.ts";
import { formatProblems, type Problem } from "../model/problem.ts";
import type { EffectiveInstallation } from "../release/installation/effective-installation.ts";
import type { LiveObject } from "../release/live-object.ts";
import { CONSOLE } from "../release/workloads/names.ts";
import { AVAILABLE, type ComponentState, degraded, progressing } from "./conditions.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed, objectsOf } from "./followed-objects.ts";
import { workloadState } from "./workload-state.ts";

export interface WorkloadStates {
  readonly node: ComponentState;
  readonly controllers: ComponentState;
  /** Absent: there is none, and none is to be. */
  readonly console?: ComponentState;
}

/** `latest` returns what is known of an object besides the snapshot. `console`: absent if the Installation does not tell. */
export function workloadStates(
  snapshot: FollowedSnapshot,
  { components }: Namespaces,
  latest: (object: LiveObject) => LiveObject,
  { console: consoleMode }: { readonly console?: "Enabled" | "Disabled" } = {},
): WorkloadStates {
  const surroundings = { pods: objectsOf(snapshot, "pods"), nodes: objectsOf(snapshot, "nodes") };
  const stateOf = (row: "daemonsets" | "deployments", name: string) => {
    const workload = objectNamed(snapshot, row, { namespace: components, name });
    if (workload !== undefined) return workloadState(latest(workload), surroundings);
    return progressing("ResourceNotReady", `${components}/${name} does not exist yet`);
  };
  const place = { namespace: components, name: CONSOLE };
  const hasConsole = consoleMode ?? (objectNamed(snapshot, "deployments", place) && "Enabled");
  return {
    node: stateOf("daemonsets", identity.nodeAgent),
    controllers: stateOf("deployments", identity.controllers),
    ...(hasConsole === "Enabled" ? { console: stateOf("deployments", CONSOLE) } : {}),
  };
}

/** `problems`: of pools that could not be written. */
export function poolsState(
  installation: EffectiveInstallation,
  pools: readonly IPPool[],
  problems: readonly Problem[],
): ComponentState {
  if (problems.length > 0) return degraded("InvalidConfigurationError", formatProblems(problems));
  const isEnabled = pools.some(({ spec }) => !spec.disabled && spec.allowedUses.includes("Workload"));
  if (isEnabled || installation.cni.ipam === "HostLocal") return AVAILABLE;
  const remedy = `create an IPPool with "${identity.adminTool} create", or declare one in ipPools of the Installation`;
  return degraded("ResourceNotReady", `no IP pool is enabled, so pods get no address; ${remedy}`);
}

/** Of what the Installation asks for itself: it is available without the one part that an earlier API server cannot serve. */
export function installationState({ flows }: Pick<EffectiveInstallation, "flows">, version: string): ComponentState {
  const problem = flows.mode === "Enabled" ? tokenBindingProblem(version) : undefined;
  if (problem === undefined) return AVAILABLE;
  const message = `${AVAILABLE.available.message}; but the API of flows has none, each node shows its own: ${problem}`;
  return { ...AVAILABLE, available: { ...AVAILABLE.available, message } };
}
