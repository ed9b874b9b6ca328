/**
 * Resources of an earlier release as this one stores them. Fields that this release does not know are left out and listed;
 * what it would refuse is an obstacle. Pure.
 */
import type { ApiObject } from "../../datastore/kube/api.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import {
  CLUSTER_INFORMATION,
  HOST_ENDPOINT,
  KUBE_CONTROLLERS_CONFIGURATION,
  NODE_AGENT_CONFIGURATION,
  type PublicKind,
} from "../../model/kinds.ts";
import { formatProblems } from "../../model/problem.ts";
import { findUnknownFields, isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { FORMER_AGENT_CONFIGURATION, FORMER_CONTROLLERS } from "../former-names.ts";
import { agentSettings, isOfNodes } from "./agent-settings.ts";
import { type Conversion, joined, NOTHING } from "./conversion.ts";
import type { FormerResourceKind } from "./former-kinds.ts";
import { copiedMetadata, formerResource, hiddenOwners, isKubernetesLabel, LABEL_RULE } from "./former-object.ts";
import type { OwnerExists } from "./former-owners.ts";

/** Owners that do not exist, or were not looked for, are left out. */
export function convertResources(
  kind: FormerResourceKind,
  objects: readonly ApiObject[],
  ownerExists: OwnerExists = () => false,
): Conversion {
  return joined(objects.map((object) => convertOne(kind, object, ownerExists)));
}

function convertOne({ plural, target }: FormerResourceKind, object: ApiObject, ownerExists: OwnerExists): Conversion {
  const what = `${target.kind} ${quoted(placeOf(object))}`;
  if (object.metadata.deletionTimestamp !== undefined) {
    return { ...NOTHING, notes: [`${what} is being deleted, and not copied`] };
  }
  if (target === (NODE_AGENT_CONFIGURATION as PublicKind) && !isOfNodes(object.metadata.name)) {
    return { ...NOTHING, notes: [`${plural} ${quoted(object.metadata.name)} applies to no node, and is not copied`] };
  }
  try {
    const owners = hiddenOwners(object);
    const existing = owners.filter((owner) => ownerExists(owner, object.metadata.namespace));
    const copy = copyOf({ plural, target }, object, what, existing);
    return { ...copy, notes: [...copy.notes, ...absentOwners(owners, existing, what)] };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { ...NOTHING, obstacles: [obstacle(what, failure.message, plural, object)] };
  }
}

function absentOwners(all: readonly Fields[], existing: readonly Fields[], what: string): readonly string[] {
  return all
    .filter((owner) => !existing.includes(owner))
    .map(
      ({ kind, name }) =>
        `${what}: its owner ${kind} ${quoted(name)} does not exist any more; the reference to it is not copied`,
    );
}

function copyOf(
  { plural, target }: FormerResourceKind,
  object: ApiObject,
  what: string,
  owners: readonly Fields[],
): Conversion {
  const { codec, kind } = target;
  const metadata = metadataFor(target, copiedMetadata(object, kind, owners));
  const { spec: given, notes, problems } = specOf(target, object);
  const stored = { apiVersion: codec.apiVersion, kind, metadata, spec: given };
  const { spec } = codec.readObject(stored, what);
  const copy = { ...stored, spec };
  const decoded = codec.decode(copy);
  const { name, namespace } = metadata;
  const key = target.key({ name, ...(typeof namespace === "string" ? { namespace } : {}) });
  return {
    records: [{ key, value: JSON.stringify(copy), what }],
    notes: [...notes, ...unknownFields(target, given, what)],
    obstacles: [
      ...problems,
      ...(decoded.ok ? [] : [formatProblems(decoded.problems)]),
      ...labelProblems(metadata["labels"]),
    ].map((reason) => obstacle(what, reason, plural, object)),
  };
}

/** They were hidden in an annotation, where any text is possible. */
function labelProblems(labels: unknown): readonly string[] {
  const all = isObject(labels) ? Object.entries(labels) : [];
  return all.flatMap(([name, value]) =>
    isKubernetesLabel([name, String(value)])
      ? []
      : [`label ${quoted(name)} with value ${quoted(value)} cannot be one of an object of the API; use ${LABEL_RULE}`],
  );
}

/** Automatic host endpoints belong to the controllers, which have another name now. */
function metadataFor(target: PublicKind, metadata: Fields & { readonly name: string }) {
  const { labels } = metadata;
  if (target !== (HOST_ENDPOINT as PublicKind) || !isObject(labels)) return metadata;
  return labels[CREATED_BY] === FORMER_CONTROLLERS
    ? { ...metadata, labels: { ...labels, [CREATED_BY]: identity.controllers } }
    : metadata;
}

const CREATED_BY = `${identity.labelPrefix}created-by`;

function specOf(
  target: PublicKind,
  { spec = {}, metadata: { name } }: ApiObject,
): { readonly spec: unknown; readonly notes: readonly string[]; readonly problems: readonly string[] } {
  if (target === (NODE_AGENT_CONFIGURATION as PublicKind)) return agentSettings(name, spec);
  // The copies are locked until all nodes have this release.
  if (target === (CLUSTER_INFORMATION as PublicKind) && isObject(spec)) {
    return { spec: { ...spec, datastoreReady: false }, notes: [], problems: [] };
  }
  if (target === (KUBE_CONTROLLERS_CONFIGURATION as PublicKind) && isObject(spec)) {
    return { spec: withoutUsual(spec), notes: [], problems: [] };
  }
  return { spec, notes: [], problems: [] };
}

/** The former controllers wrote both themselves. The period has no meaning on this datastore. */
function withoutUsual({ etcdV3CompactionPeriod: _, logSeverityScreen, ...spec }: Fields): Fields {
  return logSeverityScreen === undefined || logSeverityScreen === "Info" ? spec : { ...spec, logSeverityScreen };
}

function unknownFields({ codec }: PublicKind, spec: unknown, what: string): readonly string[] {
  const paths = findUnknownFields(codec.specSchema, spec, "spec").map(({ path }) => path);
  if (paths.length === 0) return [];
  return [`${what}: fields that this release does not have are not copied: ${paths.join(", ")}`];
}

function obstacle(what: string, reason: string, plural: string, { metadata: { name, namespace } }: ApiObject) {
  const place = namespace === undefined ? name : `${name} -n ${namespace}`;
  // Without the settings of the agents, those of the default apply at once, to all nodes.
  const way = plural === FORMER_AGENT_CONFIGURATION.plural ? "correct it" : "correct or delete it";
  return {
    message: `${what} cannot be moved: ${reason}`,
    remedy: `${way}: kubectl edit ${formerResource(plural)} ${place}`,
  };
}

function placeOf({ metadata: { name, namespace } }: ApiObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
