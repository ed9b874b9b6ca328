/**
 * The manifest of this release for an installation of an earlier one, whose objects have other shapes: what the user has changed
 * is looked up in the live objects and put where this release has it. Pure.
 */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isAddressList } from "../../release/admission/address-policies.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject } from "../../release/object-kinds.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "../../release/workloads/names.ts";
import type { Obstacle } from "../engine/facts.ts";
import { FORMER_CONFIG_MAP, FORMER_ETCD_SECRET, isSpoofingAllowed, SOURCE_SPOOFING } from "../former-names.ts";
import { parseJsonText, printJsonText } from "../merge/json-text.ts";
import { type MergeConflict, UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { environmentOf, podSpecOf, unreadVariables, withPodSpec } from "../pod-template.ts";
import { PUBLISHED_MINORS } from "../published/published-values.ts";
import { type ComparedManifest, minorNumber } from "../published/stock-manifest.ts";
import { translateEnvironment } from "./agent-settings.ts";
import type { Workloads } from "./carried-places.ts";
import { withConfigHash } from "./config-hash.ts";
import { defaultPools } from "./default-pools.ts";
import { type EtcdAccess, etcdAccess } from "./etcd-access.ts";
import {
  type Base,
  baseOf,
  comparable,
  flannelBinding,
  formerSettings,
  type LiveManifest,
  liveOf,
  PATHS,
  published,
} from "./live-manifest.ts";
import { translateNetworkList } from "./network-list.ts";
import { translateControllers } from "./translate-controllers.ts";
import { liveImage, translateDaemonSet } from "./translate-daemon-set.ts";
import type { WantedManifest, WantedObject } from "./wanted.ts";

export interface FormerInstallation {
  readonly live: LiveManifest;
  readonly daemonSet: Fields;
  /** What it is compared with; absent if this tool has no manifest of its variant. */
  readonly stock?: ComparedManifest | undefined;
  /** Settings and components. */
  readonly release: readonly KubeObject[];
  /** Of the installation. */
  readonly version: string;
  readonly isEtcd: boolean;
  /** By the resource of the former agents; a variable takes precedence over it. */
  readonly allowsSourceSpoofing: boolean;
  /** Of conflicts. */
  readonly winner: "mine" | "theirs";
}

export interface TranslatedManifest extends WantedManifest {
  readonly conflicts: readonly MergeConflict[];
}

export function translateFormer(given: FormerInstallation): TranslatedManifest {
  const settings = formerSettings(given.live);
  const agent = named(itemsIn(podSpecOf(given.daemonSet), "containers"), identity.nodeAgent);
  const configMaps = configMapsIn(given.live);
  const environment = environmentOf(agent, configMaps);
  const translated = translateEnvironment(environment, unreadVariables(agent, configMaps));
  const etcd = given.isEtcd ? etcdOf(given, settings, environment) : undefined;
  const site: Site = { ...given, settings, environment, etcd };
  const parts = [
    ...given.release.map((object) => translateObject(object, site)),
    ...flannelBinding(given.live).map(added),
  ];
  const sources = new Set(parts.flatMap(({ source }) => source ?? []));
  return {
    objects: withConfigHash(parts.flatMap(({ wanted }) => wanted)),
    settings: translated.settings,
    usualSettings: translated.usualSettings,
    formerDefaults: translated.formerDefaults,
    notes: [
      ...translated.notes,
      ...(etcd?.notes ?? []),
      ...parts.flatMap(({ notes = [] }) => notes),
      ...sourceNotes(sources, given),
    ],
    obstacles: [
      ...translated.obstacles,
      ...(etcd?.obstacles ?? []),
      ...parts.flatMap(({ obstacles = [] }) => obstacles),
    ],
    conflicts: parts.flatMap(({ conflicts = [], wanted }) => conflicts.map((each) => within(wanted[0]?.object, each))),
  };
}

interface Site extends FormerInstallation {
  readonly settings: Fields | undefined;
  readonly environment: ReadonlyMap<string, string>;
  readonly etcd: EtcdAccess | undefined;
}

interface Part {
  readonly wanted: readonly WantedObject[];
  readonly notes?: readonly string[];
  readonly obstacles?: readonly Obstacle[];
  readonly conflicts?: readonly MergeConflict[];
  readonly source?: Base["source"];
}

function etcdOf(
  { live, daemonSet }: FormerInstallation,
  settings: Fields | undefined,
  environment: ReadonlyMap<string, string>,
): EtcdAccess {
  const secret = live.get(PATHS.etcdSecret);
  return etcdAccess({ environment, settings, secret, daemonSet, secretName: FORMER_ETCD_SECRET });
}

function configMapsIn(live: LiveManifest): Readonly<Record<string, Fields>> {
  const found = [live.get(PATHS.settings), live.get(PATHS.canalSettings)].filter((each) => each !== undefined);
  return Object.fromEntries(found.map((each) => [textIn(each["metadata"], "name") ?? "", each]));
}

function translateObject(object: KubeObject, site: Site): Part {
  switch (object.kind) {
    case "DaemonSet":
      return daemonSetPart(object, site);
    case "Deployment":
      return controllersPart(object, site);
    case "ConfigMap":
      if (isAddressList(object)) return added(object);
      return object.metadata.name === NETWORK_CONFIG_MAP ? networkConfigPart(object, site) : settingsPart(object, site);
    case "Secret":
      // What is there has the certificates: an empty one would take the place of the client's key.
      return site.live.has(PATHS.etcdSecret) ? { wanted: [] } : added(object);
    case "CSIDriver":
      return { wanted: [{ object: withLiveSpec(object, site.live), mode: "whole" }] };
    case "PodDisruptionBudget":
    case "ValidatingAdmissionPolicy":
    case "ValidatingAdmissionPolicyBinding":
      return { wanted: [{ object, mode: "whole" }] };
    default:
      return added(object);
  }
}

/** Most of it cannot be changed. What an earlier release has there works for the volumes of sidecars, too. */
function withLiveSpec(object: KubeObject, live: LiveManifest): KubeObject {
  const found = liveOf(live, object);
  return found === undefined ? object : { ...object, spec: fieldsIn(found, "spec") };
}

function added(object: KubeObject): Part {
  return { wanted: [{ object, mode: "add" }] };
}

function daemonSetPart(release: KubeObject, { daemonSet, stock, etcd, winner }: Site): Part {
  const { base, source } = baseOf(daemonSet, stock?.objects);
  const live = comparable(daemonSet, base, release);
  const isBaseApplied = source === "last applied";
  const { object, notes, conflicts } = translateDaemonSet({
    ...{ base, isBaseApplied, ...ownBase(source, stock) },
    ...{ live, release, winner },
  });
  return { wanted: [{ object: withSource(object, etcd), mode: "whole" }], notes, conflicts, source };
}

function controllersPart(release: KubeObject, { live, daemonSet, stock, etcd, winner }: Site): Part {
  const former = live.get(PATHS.formerControllers);
  const place = { image: liveImage(daemonSet), certificateDirectories: etcd?.directories ?? [] };
  const { base, source } = former === undefined ? published(release) : baseOf(former, stock?.objects);
  const isBaseApplied = source === "last applied";
  const current = former === undefined ? release : comparable(former, base, release);
  const workloads: Workloads & { readonly release: KubeObject } = {
    ...{ base, isBaseApplied, ...ownBase(source, stock) },
    live: current,
    release,
    winner,
  };
  const { object, notes, conflicts } = translateControllers(workloads, place);
  return { wanted: [{ object: withSource(object, etcd), mode: "whole" }], notes, conflicts };
}

function ownBase(source: Base["source"], stock: ComparedManifest | undefined) {
  const isBaseOwn = source === "stock" && stock?.isOwn !== false;
  return { isBaseOwn, ownMinor: isBaseOwn && stock !== undefined ? minorNumber(stock.minor) : undefined };
}

/** Certificates of etcd that are not in the Secret of the manifests. */
function withSource(object: KubeObject, etcd: EtcdAccess | undefined): KubeObject {
  const { source } = etcd ?? {};
  if (source === undefined) return object;
  const pod = podSpecOf(object);
  const volumes = itemsIn(pod, "volumes").map((each) =>
    each["name"] === "etcd-secrets" ? { name: each["name"], ...source } : each,
  );
  return withPodSpec(object, { ...pod, volumes });
}

/** Keys of the earlier release stay: its pods read them when they start. */
function settingsPart(release: KubeObject, { environment, etcd }: Site): Part {
  const given = fieldsIn(release, "data");
  const data = {
    ...given,
    ...(given["default_pools"] === undefined ? {} : { default_pools: printJsonText(defaultPools(environment)) }),
    ...etcd?.data,
  };
  return {
    wanted: [{ object: { ...release, metadata: { ...release.metadata, name: FORMER_CONFIG_MAP }, data }, mode: "add" }],
  };
}

function networkConfigPart(release: KubeObject, site: Site): Part {
  const { live, settings, stock, winner } = site;
  const installed = live.get(PATHS.networkConfig);
  const former = textIn(fieldsIn(settings, "data"), "cni_network_config");
  // An upgrade that was interrupted has written it already.
  if (former === undefined)
    return { wanted: [{ object: installed === undefined ? release : adopted(release, installed), mode: "whole" }] };
  const { base, source } = baseOf(settings ?? {}, stock?.objects);
  const before = base === UNKNOWN_BASE ? undefined : textIn(fieldsIn(base, "data"), "cni_network_config");
  const theirs = textIn(fieldsIn(release, "data"), NETWORK_CONFIG_KEY) ?? "";
  const mtu = textIn(fieldsIn(settings, "data"), "veth_mtu") ?? "0";
  const questions = source === "stock" ? [] : pluginQuestions({ before, former, theirs });
  const without = winner === "mine" ? questions.map(({ type }) => type) : [];
  const variable = site.environment.get(SOURCE_SPOOFING.variable);
  const allowsSourceSpoofing = variable === undefined ? site.allowsSourceSpoofing : isSpoofingAllowed(variable);
  const lists = { base: before, live: former, release: theirs };
  const text = translateNetworkList({ ...lists, mtu, allowsSourceSpoofing, without });
  if (text === undefined) {
    const message = "The network config in cni_network_config is not valid JSON";
    return { wanted: [], obstacles: [{ message, remedy: "correct it in the ConfigMap" }] };
  }
  const object = { ...release, data: { [NETWORK_CONFIG_KEY]: text } };
  const conflicts = questions.map((each) => ({
    path: `data.${NETWORK_CONFIG_KEY}.plugins[${each["type"]}]`,
    release: each,
  }));
  return { wanted: [{ object, mode: "whole" }], conflicts };
}

function adopted(release: KubeObject, installed: Fields): KubeObject {
  return { ...release, data: fieldsIn(installed, "data") };
}

interface ListTexts {
  /** What was applied last. */
  readonly before: string | undefined;
  readonly former: string;
  readonly theirs: string;
}

/** Without the published list it is not known whether the user has removed a plugin, or the earlier release did not have it. */
function pluginQuestions({ before, former, theirs }: ListTexts): readonly Fields[] {
  const typesOf = (text: string | undefined) => itemsIn(parseJsonText(text), "plugins").map(({ type }) => type);
  const present = typesOf(former);
  const known = new Set([...present, ...typesOf(before)]);
  const isWrapped = !present.includes(identity.product);
  return itemsIn(parseJsonText(theirs), "plugins").filter(
    ({ type }) => !known.has(type) && !(isWrapped && type === identity.product),
  );
}

function within(object: KubeObject | undefined, conflict: MergeConflict): MergeConflict {
  return object === undefined ? conflict : { ...conflict, path: `${describeObject(object)}: ${conflict.path}` };
}

function sourceNotes(sources: ReadonlySet<Base["source"]>, { stock, version }: FormerInstallation): readonly string[] {
  const { first, last } = PUBLISHED_MINORS;
  const others = `what any release from v3.${first} to v3.${last} published counts as the release's`;
  if (sources.has("last applied"))
    return [
      `This tool does not have the manifest that was installed: it compares with what was applied last, and asks about settings that differ from this release; ${others}. Other changes that you had made in the file before you applied it look like a part of the release: compare the saved manifest with your file`,
    ];
  if (stock === undefined || !sources.has("stock")) return [];
  return [
    stock.isOwn
      ? `Your changes are what differs from the published manifest of ${stock.minor}`
      : `Compared with the published manifest of ${stock.minor}, since this tool does not have that of ${version}; ${others}, everything else as your change`,
  ];
}
