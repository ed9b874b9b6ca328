import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { WANTED_CLUSTER } from "../../../ipam/cluster.ts";
import {
  type ClusterInformation,
  clusterInformation,
  clusterVersion,
  withClusterVersion,
} from "../../../model/cluster-information.ts";
import { CLUSTER_INFORMATION_KEY } from "../../../model/keys.ts";
import { NODE } from "../../../model/kinds.ts";
import type { PlanningSite, Step, StepPlan, StepSite } from "../../engine/step.ts";
import { agentsBehind, isBehind } from "./agents-behind.ts";

const WHAT = "ClusterInformation default";
const FIELD = `${identity.product}Version`;
const PAUSE_MILLISECONDS = 1_000;

/**
 * An agent raises the version of the cluster when it starts as the last one. Agents that started while the datastore was
 * locked have not: then this step does.
 */
export const clusterVersionStep: Step = {
  name: "cluster-version",
  title: "Cluster version is that of the release",
  rule: 2,
  why: "earlier admin tools refuse to work on the cluster from then on, which they must not be used for any more",
  async plan(site): Promise<StepPlan | undefined> {
    const { facts } = site;
    const before = facts.storage === "former" ? facts.version : await readVersion(site);
    if (before !== undefined && !isBehind(before, facts.target)) return undefined;
    const diff = [...(before === undefined ? [] : [`-  ${FIELD}: ${before}`]), `+  ${FIELD}: ${facts.target}`];
    return {
      step: "cluster-version",
      changes: [{ action: "update", what: WHAT, diff: diff.join("\n") }],
      obstacles: [],
      notes: [
        `an earlier ${identity.adminTool} refuses to work on the cluster afterwards: install this one everywhere`,
      ],
      estimatedSeconds: 5,
      data: before === undefined ? {} : { before },
    };
  },
  remaining: async (site) => versionProblems(site),
  async act(site) {
    const { facts, options } = site;
    const end = site.now().getTime() + options.stallSeconds * 1_000;
    for (;;) {
      if ((await versionProblems(site)).length === 0) return;
      const behind = await nodesBehind(site);
      if (behind.length === 0) {
        if (await writeVersion(await site.openDatastore(), facts.target)) return;
      } else if (site.now().getTime() >= end) {
        throw new PluginError("try-again-later", `Cannot raise the version of the cluster: ${behind.join(", ")}`, {
          details: `look at the node agents of these nodes, then run "${identity.adminTool} upgrade apply" again`,
        });
      }
      await site.wait(PAUSE_MILLISECONDS);
    }
  },
  verify: async (site) => versionProblems(site),
  /** Only what is still the release's: agents of an earlier release write their own when they start. */
  async rollback(site, { data }) {
    const before = data["before"];
    // Before the move, the earlier storage had a ClusterInformation of its own, which was not touched.
    if (typeof before !== "string" || site.facts.storage === "former") return;
    const store = await site.openDatastore();
    while ((await readVersion(site)) === site.facts.target) {
      if (await writeVersion(store, before)) return;
    }
  },
};

async function versionProblems(site: PlanningSite): Promise<readonly string[]> {
  const version = await readVersion(site);
  const { target } = site.facts;
  return version !== undefined && !isBehind(version, target)
    ? []
    : [`${WHAT} has ${version ?? "no version"}, not ${target}`];
}

async function readVersion(site: PlanningSite): Promise<string | undefined> {
  const found = await readInformation(await site.openDatastore());
  return found && clusterVersion(found.information);
}

async function readInformation(
  store: Datastore,
): Promise<
  { readonly information: ClusterInformation; readonly value: string; readonly revision: string } | undefined
> {
  const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
  return (
    entry && {
      information: clusterInformation.read(entry.value, entry.key),
      value: entry.value,
      revision: entry.revision,
    }
  );
}

async function nodesBehind({ objects, facts, openDatastore }: StepSite): Promise<readonly string[]> {
  const store = await openDatastore();
  const nodes = await readAllEntries(store, NODE.prefix());
  const pods = await objects.list(`/api/v1/namespaces/${facts.namespace}/pods`);
  return agentsBehind(nodes, pods, facts.target);
}

/** Returns whether it is written; if not, somebody else has changed it meanwhile. */
async function writeVersion(store: Datastore, version: string): Promise<boolean> {
  const found = await readInformation(store);
  if (found === undefined)
    throw new PluginError("resource-missing", `Cannot raise the version of the cluster: there is no ${WHAT}`);
  const value = clusterInformation.write(withClusterVersion(found.information, version), found.value);
  return (await store.commit([{ kind: "update", key: CLUSTER_INFORMATION_KEY, value, revision: found.revision }])).ok;
}
