/**
 * When what is rendered no more is deleted. Pods of the former version work until they are replaced, and still need what
 * they were given:
 *
 *   at once             workloads and their disruption budgets; what the API server itself acts upon (APIService, admission)
 *   after the rollout   what pods use: accounts, roles and their bindings, ConfigMaps, Secrets, Services, CSIDriver
 *
 * A rollout is over when no pod of a former version is left; whether the new pods are ready does not matter. There is no
 * limit of time: without its role an agent that could not be replaced would cut off its node. What stays is reported. Pure.
 */
import { counted, listed } from "../counted.ts";
import { identity } from "../identity.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { type LiveObject, textAt } from "../release/live-object.ts";
import { describeObject, RENDERED_KINDS } from "../release/object-kinds.ts";
import { CONSOLE } from "../release/workloads/names.ts";
import { type ComponentState, progressing } from "./conditions.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed, objectsOf } from "./followed-objects.ts";
import { isUnreachable } from "./node-readiness.ts";
import { outdated, podsOf, updatedPods } from "./workload-state.ts";

const REMOVED_AT_ONCE = new Set([
  "DaemonSet",
  "Deployment",
  "PodDisruptionBudget",
  "APIService",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
]);

const WORKLOADS = [
  ["daemonsets", identity.nodeAgent],
  ["deployments", identity.controllers],
  ["deployments", CONSOLE],
] as const;

export interface RolloutView {
  readonly snapshot: FollowedSnapshot;
  readonly namespaces: Namespaces;
  readonly rendered: readonly KubeObject[];
  /** What is known of an object besides the snapshot. */
  readonly latest: (object: LiveObject) => LiveObject;
}

export interface Removal {
  readonly now: readonly LiveObject[];
  readonly later: readonly LiveObject[];
}

/** `rollout`: as `unfinishedRollout` returns it. */
export function removalOrder(unwanted: readonly LiveObject[], rollout: string | undefined): Removal {
  const isDue = ({ kind }: LiveObject) => rollout === undefined || REMOVED_AT_ONCE.has(kind);
  return { now: unwanted.filter(isDue), later: unwanted.filter((object) => !isDue(object)) };
}

/** What the first workload waits for that still has pods of a former version; `undefined` if none has. */
export function unfinishedRollout({ snapshot, namespaces, rendered, latest }: RolloutView): string | undefined {
  const running = objectsOf(snapshot, "pods").filter((pod) => isRunning(pod) && !isUnreachable(snapshot, pod));
  for (const [row, name] of WORKLOADS) {
    const { kind } = RENDERED_KINDS[row];
    const found = objectNamed(snapshot, row, { namespace: namespaces.components, name });
    const wanted = rendered.find((object) => object.kind === kind && object.metadata.name === name);
    const workload = wanted !== undefined && found !== undefined ? latest(found) : undefined;
    if (wanted !== undefined && workload === undefined) return `${describeObject(wanted)} does not exist yet`;
    const change = workload === undefined ? undefined : outdated(workload);
    if (change !== undefined) return change;
    const own = found === undefined ? running.filter((pod) => isNamed(pod, name)) : podsOf(found, running);
    const former = own.length - (workload === undefined ? 0 : updatedPods(workload));
    if (former > 0) return `waiting for ${counted(former, "former pod")} of ${namespaces.components}/${name} to end`;
  }
  return undefined;
}

/** `state` with what waits for a rollout: it runs all the same, but the change is not complete. */
export function withLeftovers(
  state: ComponentState,
  later: readonly LiveObject[],
  rollout: string | undefined,
): ComponentState {
  if (rollout === undefined || later.length === 0) return state;
  const message = `not needed any more, and deleted when pods of a former version are replaced: ${listed(later.map(describeObject))} (${rollout})`;
  return { ...state, progressing: progressing("ResourceNotReady", message).progressing };
}

function isRunning(pod: LiveObject): boolean {
  const phase = textAt(pod, "status", "phase");
  return phase !== "Succeeded" && phase !== "Failed";
}

/** The workload is gone, but its pods have its name. */
function isNamed({ metadata }: LiveObject, name: string): boolean {
  return metadata.labels?.["app.kubernetes.io/name"] === name;
}
