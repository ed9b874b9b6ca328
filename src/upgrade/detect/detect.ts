/** Finds out what is installed in a cluster. Reads only, and never guesses: what is not certain is asked of the user. */

import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { Facts, Obstacle, Storage } from "../engine/facts.ts";
import { BrokenApi } from "../owned-objects/api-resources.ts";
import { describeOwned } from "../owned-objects/owned-object.ts";
import { findOwnedObjects } from "../owned-objects/scan.ts";
import { agentsOf } from "./agents.ts";
import { datastoreKind, storageOf } from "./datastore.ts";
import { type Detection, type DetectionRequest, type Found, found, unclear } from "./detection.ts";
import { readFeatures } from "./features.ts";
import { installMethod } from "./method.ts";
import { type ClusterSnapshot, readSnapshot } from "./snapshot.ts";
import { versionObstacles } from "./supported-upgrades.ts";
import { begunRun, unfinishedSigns } from "./unfinished.ts";
import { clusterVersions } from "./versions.ts";
import { variableOf } from "./workload.ts";

export async function detectFacts(objects: ClusterObjects, request: DetectionRequest): Promise<Detection> {
  const snapshot = await readSnapshot(objects);
  const datastore = datastoreKind(snapshot, request);
  const opened = datastore.ok && datastore.value === "etcd" ? await openStore(request) : found(undefined);
  const store = opened.ok ? opened.value : undefined;
  const information = store && (await readInformation(store));
  const whole = information === undefined ? snapshot : { ...snapshot, currentInformation: information };
  return decide(whole, opened.ok ? datastore : opened, { objects, store, request });
}

async function openStore({ openDatastore }: DetectionRequest): Promise<Found<Datastore | undefined>> {
  try {
    return found(await openDatastore?.());
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    const remedy = failure.details === "" ? "name it with --etcd-endpoints and its files" : failure.details;
    return unclear(failure.message, remedy);
  }
}

interface Sources {
  readonly objects: ClusterObjects;
  readonly store: Datastore | undefined;
  readonly request: DetectionRequest;
}

async function decide(
  snapshot: ClusterSnapshot,
  datastore: Found<Facts["datastore"]>,
  { objects, store, request }: Sources,
): Promise<Detection> {
  const method = installMethod(snapshot, request);
  const storage = datastore.ok ? storageOf(snapshot, datastore.value) : datastore;
  const versions = clusterVersions(snapshot, request, begunRun(snapshot.ledger)?.from);
  const { parts, disagreements, version } = versions;
  const common = {
    target: request.target,
    parts,
    orchestratorVersion: snapshot.orchestratorVersion,
    nodes: snapshot.nodes.map(({ name }) => name),
    namespace: agentsOf(snapshot)[0]?.namespace ?? identity.systemNamespace,
    hasAggregatedApi: snapshot.hasAggregatedApi,
    unfinished: unfinishedSigns(snapshot, { disagreements, ...(method.ok ? { method: method.value } : {}) }),
  };
  const known = {
    ...(method.ok ? { method: method.value } : {}),
    ...(datastore.ok ? { datastore: datastore.value } : {}),
    ...(storage.ok ? { storage: storage.value } : {}),
    ...(version.ok ? { version: version.value } : {}),
  };
  const range = version.ok ? versionObstacles({ ...common, version: version.value }) : [];
  const obstacles = [...obstaclesOf(method, datastore, storage, version), ...range, ...dataPlaneObstacles(snapshot)];
  if (obstacles.length === 0 && method.ok && datastore.ok && storage.ok && version.ok) {
    const certain = {
      method: method.value,
      datastore: datastore.value,
      storage: storage.value,
      version: version.value,
    };
    const owned = await ownedObjects(objects, storage.value, request);
    if (!owned.ok) return { kind: "unclear", obstacles: [owned.obstacle], partial: { ...common, ...known } };
    const features = await readFeatures(storage.value, { objects, store });
    return { kind: "found", facts: { ...certain, ...common, ...features, ownedObjects: owned.value } };
  }
  return { kind: "unclear", obstacles, partial: { ...common, ...known } };
}

/** They are lost only if the owners get new UIDs, by a move of the storage. */
async function ownedObjects(
  objects: ClusterObjects,
  storage: Storage,
  { ignoredGroups }: DetectionRequest,
): Promise<Found<readonly string[]>> {
  if (storage !== "former") return found([]);
  try {
    return found((await findOwnedObjects(objects, ignoredGroups)).map(describeOwned));
  } catch (failure) {
    if (failure instanceof BrokenApi) return unclear(failure.message, failure.details);
    throw failure;
  }
}

/** Each once: a storage that is unclear because the datastore is has the same obstacle. */
function obstaclesOf(...all: readonly Found<unknown>[]): readonly Obstacle[] {
  return [...new Set(all.flatMap((each) => (each.ok ? [] : [each.obstacle])))];
}

/** Without kube-proxy, services would stop to work with the agents of this release. */
function dataPlaneObstacles(snapshot: ClusterSnapshot): readonly Obstacle[] {
  const variable = "FELIX_BPFENABLED";
  const isUsed = agentsOf(snapshot).some((agent) => variableOf(agent, variable) === "true");
  if (!isUsed) return [];
  return [
    {
      message: "the node agents use eBPF for policy and services, which this release does not have",
      remedy: `run kube-proxy again, set ${variable} to "false" in the DaemonSet, and wait for its pods`,
    },
  ];
}

async function readInformation(store: Datastore): Promise<Fields | undefined> {
  const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
  const value = entry && parseJson(entry.value);
  return isObject(value) ? value : undefined;
}
