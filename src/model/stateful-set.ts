/** Which pods a StatefulSet has: `<name>-<ordinal>`, for as many ordinals as it has replicas. Pure. */
import { partOf, textOf } from "./pod-endpoint.ts";

export const STATEFUL_SET = "StatefulSet";

export interface StatefulSetName {
  readonly namespace: string;
  readonly name: string;
}

/** The ordinals of its pods: from `start`, as many as `replicas`. */
export interface StatefulSetSize {
  readonly start: number;
  readonly replicas: number;
}

export interface SizedStatefulSet extends StatefulSetName, StatefulSetSize {}

type Fields = Readonly<Record<string, unknown>>;

/** The object as the orchestrator's API has it. */
export function statefulSetOf(object: Fields): SizedStatefulSet {
  const [metadata, spec] = [partOf(object, "metadata"), partOf(object, "spec")];
  const start = partOf(spec, "ordinals")["start"];
  return {
    namespace: textOf(metadata, "namespace") ?? "",
    name: textOf(metadata, "name") ?? "",
    start: typeof start === "number" ? start : 0,
    replicas: typeof spec["replicas"] === "number" ? spec["replicas"] : 1,
  };
}

export function statefulSetKey({ namespace, name }: StatefulSetName): string {
  return `${namespace}/${name}`;
}

/** `db-12` of `db` is 12; `undefined` if the pod has no such name. */
export function ordinalOfPod(set: string, pod: string): number | undefined {
  const text = pod.startsWith(`${set}-`) ? pod.slice(set.length + 1) : "";
  return /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : undefined;
}

export function hasOrdinal({ start, replicas }: StatefulSetSize, ordinal: number): boolean {
  return ordinal >= start && ordinal < start + replicas;
}
