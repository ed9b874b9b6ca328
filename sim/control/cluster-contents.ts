/** What a cluster's API holds, without what depends on when and how often something was written. */

import type { ApiObject } from "../../src/datastore/kube/api.ts";
import { identity } from "../../src/identity.ts";
import type { SimulatedApi } from "../datastore/simulated-api.ts";

export type Contents = Readonly<Record<string, unknown>>;

/** Leases are renewed, events pile up, and the orchestrator keeps former templates; kubelets report when pods started. */
const UNCOMPARED = /\/(leases|events|controllerrevisions|pods)\//;
const OF_MOMENT = new Set([
  "resourceVersion",
  "uid",
  "managedFields",
  "creationTimestamp",
  "generation",
  "observedGeneration",
  "lastTransitionTime",
  `${identity.labelPrefix}write`,
]);

export function clusterContents(api: Pick<SimulatedApi, "all">): Contents {
  return Object.fromEntries(compared(api).map(({ path, object }) => [path, timeless(object)]));
}

/** To notice every write. */
export function clusterVersions(api: Pick<SimulatedApi, "all">): Contents {
  return Object.fromEntries(compared(api).map(({ path, object }) => [path, object.metadata.resourceVersion]));
}

function compared(api: Pick<SimulatedApi, "all">): readonly { readonly path: string; readonly object: ApiObject }[] {
  return [...api.all()].filter(({ path }) => !UNCOMPARED.test(path));
}

function timeless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(timeless);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name, inner]) => !OF_MOMENT.has(name) && !isEmptyData(name, inner));
  return Object.fromEntries(members.map(([name, inner]) => [name, timeless(inner)]));
}

/** What is left of the data of a ConfigMap that lost its last entry: the API server leaves an empty map out. */
function isEmptyData(name: string, value: unknown): boolean {
  return name === "data" && typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** One line for each place where the second is not as the first. */
export function differences(wanted: Contents, found: Contents): readonly string[] {
  const paths = [...new Set([...Object.keys(wanted), ...Object.keys(found)])].toSorted();
  return paths.flatMap((path) =>
    Bun.deepEquals(wanted[path], found[path]) ? [] : [differenceAt(path, wanted[path], found[path])],
  );
}

function differenceAt(path: string, wanted: unknown, found: unknown): string {
  const [inner, of] = [Object(wanted), Object(found)];
  const isBoth = [wanted, found].every((each) => typeof each === "object" && each !== null && !Array.isArray(each));
  if (!isBoth) return `${path}: ${textOf(wanted)} is now ${textOf(found)}`;
  const names = [...new Set([...Object.keys(inner), ...Object.keys(of)])];
  const name = names.find((each) => !Bun.deepEquals(inner[each], of[each])) ?? "";
  return differenceAt(`${path} ${name}`, inner[name], of[name]);
}

function textOf(value: unknown): string {
  return (JSON.stringify(value) ?? "absent").slice(0, 300);
}
