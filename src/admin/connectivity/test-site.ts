/** Creates the objects of a connectivity test, waits for its pods, and reads what they report. */

import { describeFailure, PluginError } from "../../errors.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import type { InstalledImage } from "../cluster/installed-image.ts";
import { type PodState, podState } from "../cluster/pod-state.ts";
import type { Clock } from "../main/context.ts";
import { lastRound, type Probe, type Round } from "./probe.ts";
import {
  type PodPlace,
  type PolicyPhase,
  podName,
  podObject,
  policyObject,
  serviceObject,
  type TestPlan,
} from "./test-objects.ts";

const POLL_MILLISECONDS = 500;

export interface SiteOptions {
  readonly objects: ClusterObjects;
  readonly context: Clock;
  readonly plan: TestPlan;
  readonly timeoutMilliseconds: number;
}

export interface StartedPod extends PodState {
  readonly place: PodPlace;
}

/** Creates the pods and waits until each is ready or has failed, or the time is over. */
export async function startPods(
  options: SiteOptions,
  wanted: readonly { readonly place: PodPlace; readonly probes?: readonly Probe[] }[],
): Promise<readonly StartedPod[]> {
  const { objects, plan } = options;
  const path = `/api/v1/namespaces/${plan.namespace}/pods`;
  const refused = new Map<string, string>();
  for (const { place, probes } of wanted) {
    try {
      await objects.create(path, podObject(plan, place, probes));
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind === "interrupted") throw failure;
      refused.set(podName(place), describeFailure(failure));
    }
  }
  const states = await waitForPods(
    options,
    new Set(wanted.map(({ place }) => podName(place)).filter((name) => !refused.has(name))),
  );
  return wanted.map(({ place }) => {
    const name = podName(place);
    const reason = refused.get(name) ?? "it was deleted";
    return { place, ...(states.get(name) ?? { name, state: "failed", addresses: [], reason }) };
  });
}

async function waitForPods(
  { objects, context, plan, timeoutMilliseconds }: SiteOptions,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, PodState>> {
  const path = `/api/v1/namespaces/${plan.namespace}/pods`;
  for (let waited = 0; ; waited += POLL_MILLISECONDS) {
    const items = await objects.list(path);
    const states = statesOf(items, names);
    const isOver = waited >= timeoutMilliseconds;
    if (isOver || states.every(({ state }) => state !== "waiting")) {
      const failed = states.filter(({ state }) => state !== "ready");
      const explained = failed.length === 0 ? states : await withWarnings(objects, plan, items, names);
      return new Map(explained.map((each) => [each.name, each]));
    }
    await context.wait(POLL_MILLISECONDS);
  }
}

function statesOf(items: readonly Fields[], names: ReadonlySet<string>): readonly PodState[] {
  return items.flatMap((item) => podState(item) ?? []).filter(({ name }) => names.has(name));
}

async function withWarnings(
  objects: ClusterObjects,
  { namespace }: TestPlan,
  items: readonly Fields[],
  names: ReadonlySet<string>,
): Promise<readonly PodState[]> {
  const events = await objects.list(`/api/v1/namespaces/${namespace}/events`, { fieldSelector: "type=Warning" });
  const warningsOf = (pod: string) =>
    events
      .filter(({ involvedObject }) => isObject(involvedObject) && involvedObject["name"] === pod)
      .flatMap(({ reason, message }) => (typeof message === "string" ? [`${String(reason)}: ${message}`] : []));
  return items
    .flatMap((item) => {
      const name = podState(item)?.name;
      return name === undefined || !names.has(name) ? [] : [podState(item, warningsOf(name))];
    })
    .filter((state) => state !== undefined);
}

/** Creates the Service of each server; returns their addresses by name. */
export async function createServices(
  { objects, plan }: SiteOptions,
  servers: readonly PodPlace[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const path = `/api/v1/namespaces/${plan.namespace}/services`;
  const created = servers.map(async (server) => {
    const service = await objects.create(path, serviceObject(plan, server));
    return [podName(server), serviceAddresses(service)] as const;
  });
  return new Map(await Promise.all(created));
}

export function serviceAddresses(service: Fields | undefined): readonly string[] {
  const spec = service?.["spec"];
  const addresses = isObject(spec) ? (spec["clusterIPs"] ?? [spec["clusterIP"]]) : [];
  return Array.isArray(addresses) ? addresses.filter((each) => typeof each === "string" && each !== "None") : [];
}

export async function createPolicy({ objects, plan }: SiteOptions, phase: PolicyPhase): Promise<void> {
  const path = `/apis/networking.k8s.io/v1/namespaces/${plan.namespace}/networkpolicies`;
  await objects.create(path, policyObject(plan, phase));
}

/** Copies the Secrets that the image of the cluster is pulled with. */
export async function copyPullSecrets({ objects, plan }: SiteOptions, image: InstalledImage): Promise<void> {
  for (const name of image.pullSecrets) {
    const secret = await objects.read(`/api/v1/namespaces/${image.namespace}/secrets/${name}`);
    if (secret === undefined) continue;
    const copy: KubeObject = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: plan.namespace },
      type: secret["type"],
      data: secret["data"],
    };
    await objects.create(`/api/v1/namespaces/${plan.namespace}/secrets`, copy);
  }
}

/** The last round of each pod, of those whose number is greater than that in `after`. */
export async function readRounds(
  { objects, plan }: SiteOptions,
  clients: readonly string[],
  after: ReadonlyMap<string, number> = new Map(),
): Promise<ReadonlyMap<string, Round>> {
  const read = clients.map(async (client) => {
    const path = `/api/v1/namespaces/${plan.namespace}/pods/${client}/log`;
    return [client, lastRound((await objects.readText(path, { tailLines: "2" })) ?? "")] as const;
  });
  const rounds = (await Promise.all(read)).flatMap(([client, round]) =>
    round === undefined || round.round <= (after.get(client) ?? 0) ? [] : [[client, round] as const],
  );
  return new Map(rounds);
}

export function pollPause({ context }: SiteOptions): Promise<void> {
  return context.wait(POLL_MILLISECONDS);
}

/** How many polls fit into this time. */
export function pollsWithin(milliseconds: number): number {
  return Math.ceil(milliseconds / POLL_MILLISECONDS);
}
