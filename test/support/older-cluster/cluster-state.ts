/** All objects of a cluster without what differs between two runs that did the same: to compare the ends of upgrades. */
import { identity } from "../../../src/identity.ts";
import type { ClusterObjects } from "../../../src/kube/objects.ts";
import { readApiResources } from "../../../src/upgrade/owned-objects/api-resources.ts";
import { pathOf } from "../../../src/upgrade/owned-objects/owned-object.ts";
import type { AnyObject } from "./former-object.ts";

export type ClusterState = ReadonlyMap<string, AnyObject>;

/** What controllers of the orchestrator make of other objects, and records of who works at what. */
const DERIVED = new Set(["pods", "replicasets", "controllerrevisions", "leases", "endpoints", "endpointslices"]);
const VOLATILE_METADATA = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"];
const VOLATILE_ANNOTATIONS = [
  "kubectl.kubernetes.io/last-applied-configuration",
  "deployment.kubernetes.io/revision",
  "deprecated.daemonset.template.generation",
  // A random text for each write, and a time.
  `${identity.labelPrefix}write`,
  `${identity.labelPrefix}locked-since`,
  `${identity.labelPrefix}copied-records`,
];

/** By path. Without records of the upgrade itself, and those of Helm, which have times in them. */
export async function readClusterState(objects: ClusterObjects): Promise<ClusterState> {
  const resources = (await readApiResources(objects, [])).filter(({ plural }) => !DERIVED.has(plural));
  const lists = await Promise.all(
    resources.map(async ({ apiVersion, plural, root }) => {
      const items: readonly AnyObject[] = await objects.list(`${root}/${plural}`);
      return items.map((item) => [pathOf({ apiVersion, plural, ...item.metadata }), settled(item)] as const);
    }),
  );
  const isRecord = (path: string) =>
    path.includes(`/${identity.product}-upgrade`) || path.includes("/secrets/sh.helm.release.");
  return new Map(
    lists
      .flat()
      .filter(([path]) => !isRecord(path))
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

function settled(object: AnyObject): AnyObject {
  const { status: _, metadata, ...rest } = object;
  const own = Object.fromEntries(Object.entries(metadata).filter(([name]) => !VOLATILE_METADATA.includes(name)));
  const annotations = Object.entries(metadata.annotations ?? {}).filter(
    ([name]) => !VOLATILE_ANNOTATIONS.includes(name),
  );
  const owners = (metadata.ownerReferences ?? []).map((owner: AnyObject) => ({ ...owner, uid: "some" }));
  return {
    ...rest,
    metadata: { ...own, annotations: Object.fromEntries(annotations.sort()), ownerReferences: owners },
  };
}

/** `+ path`, `- path` or `path: field before after`, at most so many. */
export function differencesOf(before: ClusterState, after: ClusterState, most = 20): readonly string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths
    .flatMap((path) => {
      if (!before.has(path)) return [`+ ${path}`];
      if (!after.has(path)) return [`- ${path}`];
      return fieldDifferences(before.get(path), after.get(path), "").map((line) => `${path}: ${line}`);
    })
    .slice(0, most);
}

function fieldDifferences(before: AnyObject, after: AnyObject, at: string): readonly string[] {
  if (Bun.deepEquals(before, after)) return [];
  const areObjects = [before, after].every((each) => typeof each === "object" && each !== null);
  if (!areObjects) return [`${at}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => fieldDifferences(before[name], after[name], `${at}.${name}`));
}
