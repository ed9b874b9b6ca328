/**
 * `label container NAME` and `label network NAME`: labels that outlast the endpoints of containers. They are in a
 * ContainerLabels, which is created with the first of them and deleted with the last.
 */

import { createHash } from "node:crypto";
import { listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import {
  type ContainerLabels,
  containerOf,
  isRuntimeName,
  isSameTarget,
  type LabelTarget,
  RUNTIME_NAME_RULE,
} from "../../model/container-labels.ts";
import { LONGEST_NAME } from "../../model/longest-name.ts";
import { isResourceName } from "../../model/metadata.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { isNodeName } from "../../model/node-name.ts";
import { formatProblems } from "../../model/problem.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { quoted } from "../../quote.ts";
import { withDatastore } from "../datastore/open.ts";
import { nameOfNode } from "../host/node-name.ts";
import { CONTAINER_LABELS_ROW, readContainerEndpoints, readContainerLabels } from "../kinds/container-labels.ts";
import { namedBy, workloadNames } from "../kinds/workload-names.ts";
import { type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host } from "../main/context.ts";
import { givenResource } from "../manifest/manifest.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { surroundingsOf } from "../resources/dry-run.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { lostRace } from "../resources/lost-race.ts";
import { USUAL_NAMESPACE } from "../resources/options.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { writeResource } from "../resources/write.ts";
import { compareWithCluster } from "../version/compare-with-cluster.ts";
import { versionIn } from "../version/version-check.ts";
import { changedPairs, type KeyChange, keyChangeOf, type Pairs } from "./key-change.ts";
import { CONTAINER_WORDS, NODE_OPTION } from "./options.ts";
import { updateResource } from "./update.ts";

/** What the user labels, and how. */
export interface LabelledContainers {
  readonly word: ContainerWord;
  readonly name: string;
  readonly change: KeyChange;
}

/** `undefined`: the operands are about a kind. */
export function parseContainers(given: Given): LabelledContainers | undefined {
  const [first = "", ...others] = given.operands;
  const [kind = "", ...path] = first.split("/");
  const word = containerWord(kind);
  if (word === undefined) return undefined;
  const [name, ...rest] = path.length === 0 ? others : [path.join("/"), ...others];
  if (!name || name.includes("=")) throw new UsageError(`The name of the ${word} is required`);
  if (!isRuntimeName(name)) {
    throw new UsageError(`${quoted(name)} is not the name of a ${word}: ${RUNTIME_NAME_RULE}${hintOfNamespace(name)}`);
  }
  if (given.values.has("namespace")) throw new UsageError(`A ${word} has no namespace; remove --namespace`);
  if (word === "network") refuseNodeOption(given);
  return { word, name, change: keyChangeOf("label", rest, given) };
}

function hintOfNamespace(name: string): string {
  const afterNamespace = name.slice(name.lastIndexOf("/") + 1);
  if (!name.includes("/") || !isRuntimeName(afterNamespace)) return "";
  return `; there are no namespaces: leave out ${quoted(name.slice(0, -afterNamespace.length))}`;
}

type ContainerWord = (typeof CONTAINER_WORDS)[number];

export function containerWord(text: string): ContainerWord | undefined {
  return CONTAINER_WORDS.find((each) => [each, `${each}s`].includes(text.toLowerCase()));
}

/** For completion: the containers of all nodes, or their networks. */
export async function connectedNames(store: Datastore, word: ContainerWord): Promise<readonly string[]> {
  const present = (await readContainerEndpoints(store)).flatMap((endpoint) => containerOf(endpoint) ?? []);
  return [...new Set(present.flatMap((each) => each[word] ?? []))];
}

export function refuseNodeOption(given: Given): void {
  if (!given.values.has(NODE_OPTION.name)) return;
  throw new UsageError("--node can only be given with container: a network and its labels are the same on every node");
}

export async function labelContainers(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { word, name, change }: LabelledContainers,
): Promise<ExitCode> {
  const target: LabelTarget =
    word === "network" ? { network: name } : { node: await nodeOf(context, given), container: name };
  return withDatastore(context, given, async (store) => {
    const work = surroundingsOf(given, { store, context });
    return withPolicyNotes(work.store, { context, given, kinds: [CONTAINER_LABELS_ROW] }, (noted) =>
      forEachResource(context, given, {
        all: [{ kind: CONTAINER_LABELS_ROW, name: { name: resourceNames(target)[0] } }],
        act: async () => {
          const done = await label(noted, { target, change }, work.context);
          if (done.action === "deleted" || done.action === "unchanged") return done;
          const notes = [await noteIfNobody(work.store, target), await noteOfOlderAgents(work.store, context)];
          const note = notes.filter((each) => each !== undefined).join("; ");
          return { ...done, action: "labelled", ...(note === "" ? {} : { note }) };
        },
      }),
    );
  });
}

async function nodeOf(context: Call & Files & Host, given: Given): Promise<string> {
  const named = given.values.get(NODE_OPTION.name);
  if (named === undefined) return nameOfNode(context, given);
  if (named !== "" && isNodeName(named)) return named;
  throw new UsageError(`"--node" is ${quoted(named)}: not a valid node name`);
}

/** The second is for the case that somebody else has the first. Runtimes allow names that a resource cannot have. */
export function resourceNames({ node, container, network }: LabelTarget): readonly [string, string] {
  const exact = container === undefined ? `network.${network}` : `${node}.${container}`;
  // Nodes and containers may have dots in their names: the digits tell what the text with a dot between them does not.
  const whole = JSON.stringify([node, container, network]);
  const digits = createHash("sha256").update(whole).digest("hex").slice(0, DIGITS);
  const plain = exact
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, "-")
    .replace(/[-.]*\.[-.]*/g, ".")
    .slice(0, LONGEST_NAME - DIGITS - 1)
    .replace(/^[-.]+|[-.]+$/g, "");
  const long = plain === "" ? digits : `${plain}-${digits}`;
  return [isResourceName(exact) ? exact : long, long];
}

const DIGITS = 8;
const ATTEMPTS = 5;

interface Labelling {
  readonly target: LabelTarget;
  readonly change: KeyChange;
}

/** Starts again if somebody else creates or deletes the resource meanwhile. */
async function label(store: Datastore, labelling: Labelling, context: Clock): Promise<ActionResult> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await labelOnce(store, labelling, context);
    } catch (failure) {
      const isRaced = failure instanceof PluginError && RACED.includes(failure.kind);
      if (!isRaced || attempt === ATTEMPTS) throw failure;
    }
  }
}

const RACED: readonly string[] = ["resource-exists", "resource-missing", "resource-changed"];

async function labelOnce(store: Datastore, { target, change }: Labelling, context: Clock): Promise<ActionResult> {
  const kind = CONTAINER_LABELS_ROW;
  const all = await readContainerLabels(store);
  const existing = all.find(({ spec }) => isSameTarget(spec, target));
  const labels = changedPairs(existing?.spec.labels ?? {}, change);
  const isEmpty = Object.keys(labels).length === 0;
  if (existing === undefined) {
    if (isEmpty) return { action: "unchanged" };
    await refuseId(store, target);
    const name = freeName(target, all);
    const given = givenResource(kind, decoded(name, { ...target, labels }), USUAL_NAMESPACE);
    const options = { mode: "create", now: () => context.now(), uuid: () => context.uuid() } as const;
    return { ...(await writeResource(store, given, options)), name: { name } };
  }
  const { name, resourceVersion: revision = "" } = existing.metadata;
  if (isEmpty) {
    const written = await store.commit([{ kind: "delete", key: kind.key({ name }), revision }]);
    if (!written.ok) throw lostRace(`Cannot delete containerlabels/${name}`, written.reason);
    return { action: "deleted", note: "it had no other label", name: { name } };
  }
  const changed = await updateResource(
    store,
    { kind, name: { name } },
    {
      change: (resource) => {
        const { spec } = kind.codec.readObject(resource, kind.key({ name }));
        if (!isSameTarget(spec, target)) throw lostRace(`Cannot change containerlabels/${name}`, "stale");
        return { ...resource, spec: { ...spec, labels: changedPairs(spec.labels, change) } };
      },
      context,
    },
  );
  return { ...changed, name: { name } };
}

/** An ID changes with each restart. A name may begin as one: it is that of a container if a record or a running container says so. */
async function refuseId(store: Datastore, { node, container }: LabelTarget): Promise<void> {
  if (container === undefined) return;
  const here = (await readContainerEndpoints(store)).filter(({ spec }) => spec.node === node);
  const named = namedBy(container, here, workloadNames);
  if (named.length === 0 || named.some(({ spec }) => spec.workload === container)) return;
  const names = [...new Set(named.flatMap(({ spec }) => spec.workload ?? []))];
  const [only, ...others] = names;
  const which =
    only === undefined
      ? "a container to which its runtime gave no name"
      : `container ${listed(names.map((name) => quoted(name)))}`;
  const details =
    only === undefined
      ? "label its network instead, or start it with a name"
      : others.length > 0
        ? "give the name of one of them"
        : `give its name: ${identity.adminTool} label container ${only} …`;
  throw new PluginError("resource-invalid", `Cannot label container ${quoted(container)}: it is the ID of ${which}`, {
    details,
  });
}

/** For a resource to create: nobody else's labels are replaced. */
function freeName(target: LabelTarget, all: readonly ContainerLabels[]): string {
  const names = resourceNames(target);
  const taken = new Map(all.map((each) => [each.metadata.name, each]));
  const free = names.find((name) => !taken.has(name));
  if (free !== undefined) return free;
  const others = [...new Set(names)].map(
    (name) => `ContainerLabels ${quoted(name)} is about ${targetText(taken.get(name)?.spec ?? {})}`,
  );
  throw new PluginError("resource-invalid", `Cannot label ${targetText(target)}: ${others.join(", and ")}`, {
    details: "create a ContainerLabels with another name for it: labels are then written to that one",
  });
}

function targetText({ node, container, network }: LabelTarget): string {
  return container === undefined
    ? `network ${quoted(network)}`
    : `container ${quoted(container)} of node ${quoted(node)}`;
}

function decoded(name: string, spec: LabelTarget & { readonly labels: Pairs }) {
  const kind = CONTAINER_LABELS_ROW;
  const result = kind.codec.decode({ apiVersion: kind.codec.apiVersion, kind: kind.kind, metadata: { name }, spec });
  if (result.ok) return result.value;
  throw new PluginError("resource-invalid", `Cannot label ${targetText(spec)}: ${formatProblems(result.problems)}`);
}

/** A name that nobody has may be a typing error, or that of a container which is started later. */
async function noteIfNobody(store: Datastore, target: LabelTarget): Promise<string | undefined> {
  const endpoints = await readContainerEndpoints(store);
  return target.container === undefined ? noteOfNetwork(target, endpoints) : noteOfContainer(target, endpoints);
}

/** The version of a cluster is that of its oldest agent. */
async function noteOfOlderAgents(store: Datastore, { version }: Call): Promise<string | undefined> {
  const { answers } = await store.read([WANTED_CLUSTER]);
  const cluster = versionIn(answers[0]?.[0]?.value);
  if (compareWithCluster(version, cluster).kind !== "tool is newer") return undefined;
  return `node agents of ${cluster} may not know labels of containers: policies count them on each node from when its agent is ${version}`;
}

function noteOfNetwork({ network = "" }: LabelTarget, endpoints: readonly WorkloadEndpoint[]): string | undefined {
  const names = endpoints.flatMap((endpoint) => containerOf(endpoint)?.network ?? []);
  if (names.includes(network)) return undefined;
  if (NO_NETWORKS.includes(network)) {
    return `runtimes connect a container in network ${quoted(network)} to no network of ${identity.product}: it has no endpoint that could get the labels`;
  }
  return `no container is connected to network ${quoted(network)} now: the labels apply to those that are connected later${guess(network, names)}`;
}

/** What runtimes call the absence of a network of its own. */
const NO_NETWORKS = ["none", "host"];

function noteOfContainer(
  { node, container = "" }: LabelTarget,
  endpoints: readonly WorkloadEndpoint[],
): string | undefined {
  const here = endpoints.filter(({ spec }) => spec.node === node);
  const names = here.flatMap((endpoint) => containerOf(endpoint)?.container ?? []);
  if (names.includes(container)) return undefined;
  return [
    `node ${quoted(node)} has no container ${quoted(container)} in a network of ${identity.product} now: the labels apply when it is started`,
    `for a container of a podman pod, give the name of the pod${guess(container, names)}`,
  ].join("; ");
}

function guess(wanted: string, names: readonly string[]): string {
  const nearest = nearestName(wanted, names);
  return nearest === undefined ? "" : `; did you mean ${quoted(nearest)}?`;
}
