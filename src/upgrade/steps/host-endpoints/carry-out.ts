/** Replaces host endpoints of users by automatic ones. Each part does nothing if it is done. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { automaticName, isAutomatic } from "../../../model/automatic-host-endpoint.ts";
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { HOST_ENDPOINT, KUBE_CONTROLLERS_CONFIGURATION } from "../../../model/kinds.ts";
import type { Node } from "../../../model/node.ts";
import type { PolicyResources } from "../../../policy/judge/resources.ts";
import { quoted } from "../../../quote.ts";
import type { Labels } from "../../../selector/selector.ts";
import { asNew, changeRecord } from "../../engine/change-record.ts";
import type { StepSite } from "../../engine/step.ts";
import { listed } from "../../engine/wording.ts";
import { type AutoCreate, autoCreateOf, withAutoCreate } from "./automatic-creation.ts";
import type { NodeLabels } from "./copied-labels.ts";
import { withoutUpgradePolicy } from "./migration.ts";
import { changeLabels } from "./node-labels.ts";
import { policyEffects, type Replacement } from "./policy-effects.ts";
import { CONFIGURATION_KEY, readEndpoints } from "./read-hosts.ts";
import type { SavedMigration } from "./saved-migration.ts";

export interface Carrying {
  readonly site: StepSite;
  readonly store: Datastore;
}

/** A value that is neither the former nor the wanted one was set by somebody else since. */
export async function labelNodes({ site, store }: Carrying, nodes: readonly NodeLabels[]): Promise<void> {
  for (const { target, wanted, former } of nodes) {
    await changeLabels({ objects: site.objects, store }, target, (present) => {
      const missing = Object.entries(wanted).filter(([label, value]) => present[label] !== value);
      const other = missing.find(([label]) => present[label] !== undefined && present[label] !== former[label]);
      if (other !== undefined) {
        throw new PluginError(
          "resource-changed",
          `Cannot set label ${quoted(other[0])} of node ${quoted(target.name)}: it is ${quoted(present[other[0]])} since the plan was made`,
        );
      }
      if (missing.length > 0)
        site.progress(`Labels node ${target.name}: ${missing.map(([label]) => label).join(", ")}`);
      return Object.fromEntries(missing);
    });
  }
}

export async function switchAutomatic({ store }: Carrying, autoCreate: AutoCreate | undefined): Promise<void> {
  const { codec } = KUBE_CONTROLLERS_CONFIGURATION;
  await changeRecord(store, CONFIGURATION_KEY, (value) => {
    const present = value === undefined ? undefined : codec.read(value, CONFIGURATION_KEY);
    if (autoCreateOf(present?.spec) === autoCreate) return undefined;
    const resource = present ?? codec.make({ name: "default" }, {});
    return codec.write({ ...resource, spec: withAutoCreate(resource.spec, autoCreate) }, value);
  });
}

const POLL_MILLISECONDS = 1_000;

/** Waits until every node has an automatic host endpoint with all its labels. Fails if none is added for too long. */
export async function untilAutomatic({ site, store }: Carrying, labels: readonly NodeLabels[]): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  let since = site.now().getTime();
  for (;;) {
    site.signal.throwIfAborted();
    const { nodes, hostEndpoints } = await readEndpoints(store);
    const missing = nodesWithoutAutomatic(withLabels(nodes, labels), hostEndpoints);
    if (missing.length === 0) return;
    if (missing.length < fewest) {
      fewest = missing.length;
      since = site.now().getTime();
      site.progress(`Waits for the automatic host endpoint of ${listed(missing)}`);
    }
    if (site.now().getTime() - since > site.options.stallSeconds * 1000)
      throw stalled(missing, site.options.stallSeconds);
    await site.wait(POLL_MILLISECONDS);
  }
}

/** On etcd the labels of the orchestrator's nodes take a moment to reach ours. */
function withLabels(nodes: readonly Node[], added: readonly NodeLabels[]): readonly Node[] {
  const wanted = new Map(added.map((each) => [each.node, each.wanted]));
  return nodes.map((node) => {
    const { metadata } = node;
    return { ...node, metadata: { ...metadata, labels: { ...metadata.labels, ...wanted.get(metadata.name) } } };
  });
}

export function nodesWithoutAutomatic(
  nodes: readonly Node[],
  hostEndpoints: readonly HostEndpoint[],
): readonly string[] {
  return nodes
    .filter(({ metadata: { name, labels = {} } }) => {
      const endpoint = automaticOf(name, hostEndpoints);
      return endpoint === undefined || !isContained(labels, endpoint.metadata.labels ?? {});
    })
    .map(({ metadata }) => metadata.name);
}

function automaticOf(node: string, endpoints: readonly HostEndpoint[]): HostEndpoint | undefined {
  return endpoints.find((each) => isAutomatic(each) && each.metadata.name === automaticName(node));
}

function isContained(labels: Labels, others: Labels): boolean {
  return Object.entries(labels).every(([label, value]) => others[label] === value);
}

function stalled(nodes: readonly string[], seconds: number): PluginError {
  return new PluginError(
    "try-again-later",
    `Cannot go on: there is no automatic host endpoint with all labels of ${listed(nodes)} after ${seconds} seconds; nothing is deleted`,
    {
      details: `check that ${identity.controllers} runs, that its controller "node" is enabled, and that its variable AUTO_HOST_ENDPOINTS is not set`,
    },
  );
}

/** Policies that select a host by an endpoint that is about to be deleted, and not by the automatic one that replaces it. */
export function lostPolicies(endpoints: readonly HostEndpoint[], resources: PolicyResources): readonly string[] {
  const replacements = [...Map.groupBy(endpoints, ({ spec }) => spec.node ?? "")].map(([node, before]): Replacement => {
    const after = automaticOf(node, resources.hostEndpoints);
    if (after === undefined) {
      throw new PluginError(
        "try-again-later",
        `Cannot delete the host endpoints of node ${quoted(node)}: it has no automatic one`,
      );
    }
    return { node, before, after };
  });
  return policyEffects(replacements, withoutUpgradePolicy(resources)).flatMap(({ node, direction, lost }) =>
    lost.map((title) => `${title} (${direction}) does not select the automatic host endpoint of ${node}`),
  );
}

/** One after the other, each only if it is still the one that was saved. */
export async function deleteEndpoints({ site, store }: Carrying, endpoints: readonly HostEndpoint[]): Promise<void> {
  for (const { metadata } of endpoints) {
    const key = HOST_ENDPOINT.key({ name: metadata.name });
    const outcome = await changeRecord(store, key, (value) => {
      if (value === undefined) return undefined;
      const { uid } = HOST_ENDPOINT.codec.read(value, key).metadata;
      if (uid === metadata.uid) return "delete";
      throw new PluginError(
        "resource-changed",
        `Cannot delete host endpoint ${quoted(metadata.name)}: it was created again since the upgrade began`,
        { details: "plan the upgrade again" },
      );
    });
    if (outcome === "changed") site.progress(`Deleted host endpoint ${metadata.name}`);
  }
}

/** As they were, with new UIDs. One that is there already stays. */
export async function restoreEndpoints(
  { site, store }: Carrying,
  endpoints: SavedMigration["endpoints"],
): Promise<void> {
  for (const endpoint of endpoints) {
    const { name } = endpoint.metadata;
    const outcome = await changeRecord(store, HOST_ENDPOINT.key({ name }), (present) => present ?? asNew(endpoint));
    if (outcome === "changed") site.progress(`Restored host endpoint ${name}`);
  }
}

/** Labels that were added go, those that were replaced get their former value; what somebody else has changed since stays. */
export async function restoreLabels({ site, store }: Carrying, nodes: readonly NodeLabels[]): Promise<void> {
  for (const { target, wanted, former } of nodes) {
    await changeLabels({ objects: site.objects, store }, target, (present) => {
      const ours = Object.entries(wanted).filter(([label, value]) => present[label] === value);
      return Object.fromEntries(ours.map(([label]) => [label, former[label] ?? null]));
    });
  }
}
