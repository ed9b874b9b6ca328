/**
 * The manifest of this release for an installation whose objects have its shapes: plain three-way merges. What was applied last
 * has the changes that the user had made in the file before: where users change manifests, a value of it that the release does
 * not have may be such a change. Pure.
 */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isAddressList } from "../../release/admission/address-policies.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject } from "../../release/object-kinds.ts";
import type { Obstacle } from "../engine/facts.ts";
import { FORMER_CONFIG_MAP, FORMER_ETCD_SECRET } from "../former-names.ts";
import { type MergeConflict, mergeThreeWay, UNKNOWN_BASE, type Versions } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf, withPodSpec } from "../pod-template.ts";
import { CARRIED_POD_FIELDS } from "./carried-places.ts";
import { hashIn, withConfigHash, withHash } from "./config-hash.ts";
import { etcdAccess } from "./etcd-access.ts";
import { imageConflicts, imageInPlaceOf } from "./image-place.ts";
import { baseOf, comparable, daemonSetOf, type LiveManifest, liveOf, PATHS, published } from "./live-manifest.ts";
import type { TranslatedManifest } from "./translate-former.ts";

export interface PresentInstallation {
  readonly live: LiveManifest;
  readonly release: readonly KubeObject[];
  /** Whether the live objects are of this very release. */
  readonly isSameVersion: boolean;
  readonly isEtcd: boolean;
  readonly winner: "mine" | "theirs";
}

export function mergePresent({
  live,
  release,
  isSameVersion,
  isEtcd,
  winner,
}: PresentInstallation): TranslatedManifest {
  const conflicts: MergeConflict[] = [];
  const objects = release
    .map((object) => underLiveName(object, live))
    .flatMap((object) => {
      const found = liveOf(live, object);
      if (found === undefined) return [object];
      if (object.kind === "Secret") return [];
      if (isAddressList(object)) return [object];
      if (isSettings(object)) return [withLiveSettings(object, found)];
      const { base, source } = isSameVersion ? published(object) : baseOf(found, undefined);
      const merged = mergeObject({ object, found, base, isBaseApplied: source === "last applied" }, winner);
      conflicts.push(...merged.conflicts);
      return [merged.object];
    });
  return {
    objects: withConfigHash(objects.map((object) => ({ object, mode: isAddressList(object) ? "add" : "whole" }))),
    settings: {},
    notes: [],
    obstacles: isEtcd ? etcdObstacles(live) : [],
    conflicts,
  };
}

/** Beside flannel the DaemonSet of the node agents keeps the name that it had in an earlier release: a second one must not appear. */
function underLiveName(object: KubeObject, live: LiveManifest): KubeObject {
  const name = textIn(fieldsIn(daemonSetOf(live), "metadata"), "name");
  if (object.kind !== "DaemonSet" || object.metadata.name !== identity.nodeAgent || name === undefined) return object;
  return { ...object, metadata: { ...object.metadata, name } };
}

function etcdObstacles(live: LiveManifest): readonly Obstacle[] {
  const [settings, secret] = [live.get(PATHS.settings), live.get(PATHS.etcdSecret)];
  return etcdAccess({ settings, secret, daemonSet: daemonSetOf(live) ?? {}, secretName: FORMER_ETCD_SECRET }).obstacles;
}

function isSettings({ kind, metadata }: KubeObject): boolean {
  return kind === "ConfigMap" && metadata.name === FORMER_CONFIG_MAP;
}

/** They are what the administrator has to set: those of the release are examples and placeholders. */
function withLiveSettings(object: KubeObject, found: Fields): KubeObject {
  return { ...object, data: { ...fieldsIn(object, "data"), ...fieldsIn(found, "data") } };
}

interface ObjectVersions {
  readonly object: KubeObject;
  readonly found: Fields;
  readonly base: Fields | typeof UNKNOWN_BASE;
  /** Whether the base is what was applied last. */
  readonly isBaseApplied: boolean;
}

/** Images and the hash of the network config follow from the version: they are not edits. */
function mergeObject({ object, found, base, isBaseApplied }: ObjectVersions, winner: "mine" | "theirs") {
  const release = withImages(object, (name, image) => imageInPlaceOf(imageOf(found, name), image, winner));
  const live = comparable(found, base, object);
  const levelled = withImages(live as KubeObject, (name, image) => imageOf(release, name) ?? image);
  const hash = hashIn(release);
  const mine = hash === undefined ? levelled : withHash(levelled, hash);
  const before = base === UNKNOWN_BASE ? base : levelledBase(base as KubeObject, release);
  const { value, conflicts } = mergeThreeWay(
    { base: before, live: mine, release },
    winner,
    isBaseApplied ? isPossibleEdit : undefined,
  );
  const merged = value as KubeObject;
  const selector = fieldsIn(found, "spec", "selector");
  const isWorkload = fieldsIn(object, "spec", "template")["spec"] !== undefined;
  const path = (each: MergeConflict) => ({ ...each, path: `${describeObject(object)}: ${each.path}` });
  return {
    object: isWorkload ? { ...merged, spec: { ...fieldsIn(merged, "spec"), selector } } : merged,
    conflicts: [...conflicts, ...renamedImages(object, found)].map(path),
  };
}

function renamedImages(object: KubeObject, found: Fields): readonly MergeConflict[] {
  return LISTS.flatMap((list) =>
    itemsIn(podSpecOf(object), list).flatMap(({ name, image }) =>
      imageConflicts(`spec.template.spec.${list}[${name}].image`, imageOf(found, String(name)), String(image)),
    ),
  );
}

function levelledBase(base: KubeObject, release: KubeObject): KubeObject {
  const levelled = withImages(base, (name, image) => imageOf(release, name) ?? image);
  const hash = hashIn(release);
  return hash === undefined ? levelled : withHash(levelled, hash);
}

const LISTS = ["initContainers", "containers"] as const;

function imageOf(workload: unknown, container: string): string | undefined {
  const pod = podSpecOf(workload);
  return LISTS.map((list) => textIn(named(itemsIn(pod, list), container), "image")).find(
    (image) => image !== undefined,
  );
}

function withImages(workload: KubeObject, change: (container: string, image: string) => string): KubeObject {
  const pod = podSpecOf(workload);
  const lists = LISTS.filter((list) => pod[list] !== undefined).map((list) => {
    const containers = itemsIn(pod, list).map((each) => ({
      ...each,
      image: change(String(each["name"]), String(each["image"])),
    }));
    return [list, containers] as const;
  });
  return lists.length === 0 ? workload : withPodSpec(workload, { ...pod, ...Object.fromEntries(lists) });
}

const POD = String.raw`spec\.template\.spec\.`;
const CONTAINER = String.raw`${POD}(?:c|initC)ontainers\[[^\]]*\]`;

/** Present or removed, it may be the user's choice: the release works with both. */
const CHOICES = new RegExp(
  String.raw`^(?:data|spec\.(?:replicas|updateStrategy|strategy)|${POD}(?:${CARRIED_POD_FIELDS.join("|")})|${CONTAINER}\.resources)(?![A-Za-z])`,
);
/** What the user may have added; what the release adds there is needed. */
const ADDITIONS = new RegExp(
  String.raw`^(?:(?:spec\.template\.)?metadata\.(?:labels|annotations)|${POD}(?:containers|initContainers|volumes|securityContext))(?![A-Za-z])`,
);
/** It means something to the program of one release only. */
const OF_PROGRAM = new RegExp(
  String.raw`^${CONTAINER}\.(?:command|args|image|ports|livenessProbe|readinessProbe|startupProbe|lifecycle)(?![A-Za-z])`,
);

function isPossibleEdit(path: string, { live }: Versions): boolean {
  if (CHOICES.test(path)) return true;
  return live !== undefined && ADDITIONS.test(path) && !OF_PROGRAM.test(path);
}
