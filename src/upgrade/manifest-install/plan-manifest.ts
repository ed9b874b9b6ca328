/** What the manifest of this release becomes in this cluster. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { notesForServer, servedBy } from "../../release/older-servers.ts";
import type { Facts, ManifestNetwork, Obstacle } from "../engine/facts.ts";
import type { UpgradeOptions } from "../engine/options.ts";
import type { TargetRelease } from "../engine/target-release.ts";
import { parseJsonText } from "../merge/json-text.ts";
import type { MergeConflict } from "../merge/three-way.ts";
import { fieldsIn, textIn } from "../object-fields.ts";
import type { ComparedManifest } from "../published/stock-manifest.ts";
import { formerSettings, isFormer, type LiveManifest } from "./live-manifest.ts";
import { mergePresent } from "./merge-present.ts";
import { hasOwnPlugin } from "./network-list.ts";
import { translateFormer } from "./translate-former.ts";
import type { WantedManifest } from "./wanted.ts";

export interface ManifestSite {
  readonly live: LiveManifest;
  readonly daemonSet: Fields;
  readonly facts: Facts;
  readonly release: TargetRelease;
  readonly options: Pick<UpgradeOptions, "onConflict">;
  readonly stock: ComparedManifest | undefined;
}

export function wantedManifest({ live, daemonSet, facts, release, options, stock }: ManifestSite): WantedManifest {
  const { datastore, allowsSourceSpoofing } = facts;
  const network = targetNetwork(live, daemonSet, facts);
  const { settings, components } = release.manifest({ datastore, network });
  const whole = [...settings, ...components];
  const objects = servedBy(facts.orchestratorVersion, whole);
  const winner = options.onConflict === "theirs" ? "theirs" : "mine";
  const { conflicts, ...wanted } = isFormer(daemonSet)
    ? translateFormer({
        ...{ live, daemonSet, stock, version: facts.version, release: objects, isEtcd: datastore === "etcd", winner },
        allowsSourceSpoofing: allowsSourceSpoofing ?? false,
      })
    : mergePresent({
        live,
        release: objects,
        isSameVersion: facts.version === facts.target,
        isEtcd: datastore === "etcd",
        winner,
      });
  const { notes, obstacles } = decided(conflicts, options.onConflict);
  const leftOut = notesForServer(facts.orchestratorVersion, whole);
  return { ...wanted, notes: [...leftOut, ...wanted.notes, ...notes], obstacles: [...wanted.obstacles, ...obstacles] };
}

/**
 * With flannel, the plugin of earlier releases connected the pods, and flannel the nodes: this release calls that "fabric".
 * "other" is a plugin of somebody else that connects the pods.
 */
export function targetNetwork(live: LiveManifest, daemonSet: Fields, { method }: Facts): ManifestNetwork {
  const network = method.kind === "manifest" ? method.network : "own";
  if (!isFormer(daemonSet) || network === "own") return network;
  const text = textIn(fieldsIn(formerSettings(live), "data"), "cni_network_config");
  return hasOwnPlugin(parseJsonText(text)) ? "fabric" : network;
}

function decided(conflicts: readonly MergeConflict[], choice: UpgradeOptions["onConflict"]) {
  if (choice !== "fail") {
    const whose = choice === "mine" ? "yours" : "that of the release";
    return { notes: conflicts.map((each) => `Conflict, ${whose} is taken: ${describe(each)}`), obstacles: [] };
  }
  const remedy =
    'decide all of them with "--on-conflict mine" or "--on-conflict theirs", or change the live object first';
  const obstacles: readonly Obstacle[] = conflicts.map((each) => ({
    message: `Your change and the release's differ: ${describe(each)}`,
    remedy,
  }));
  return { notes: [], obstacles };
}

function describe({ path, ...values }: MergeConflict): string {
  const shown = Object.entries({ base: "was", live: "is", release: "becomes" }).map(([name, word]) => {
    const value = values[name as keyof typeof values];
    return `${word} ${value === undefined ? "absent" : JSON.stringify(value)}`;
  });
  return `${path} ${"base" in values || !("live" in values && "release" in values) ? shown.join(", ") : shown.slice(1).join(", ")}`;
}
