/**
 * The spec of an Installation of an earlier release as this release has it. What has no meaning any more is dropped with a
 * note; what the nodes or the pods would miss is an obstacle instead. Pure.
 */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { installation } from "../../model/installation/installation.ts";
import { CONTROLLERS_FIELD, NETWORK_FIELD } from "../../model/installation/names.ts";
import { REFUSED_NETWORK_FIELDS } from "../../model/installation/network.ts";
import { REFUSED_SPEC_FIELDS } from "../../model/installation/spec.ts";
import { formatProblem } from "../../model/problem.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { listAt } from "../../release/live-object.ts";
import type { Obstacle } from "../engine/facts.ts";
import { FORMER_CONTROLLERS } from "../former-names.ts";
import { fieldsIn } from "../object-fields.ts";

export interface Translated {
  readonly spec: Fields;
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

/** How messages name the fields: `Installation default: spec.variant`, `Value installation.variant`. */
interface Place {
  readonly what: string;
  readonly root: string;
}

/** `schema`: of the spec, in the definition of this release. */
export function translateInstallation(spec: Fields, schema: unknown, place: Place): Translated {
  const notes: string[] = [];
  const note = (path: string, why: string) => notes.push(`${place.what} ${place.root}.${path} is dropped: ${why}`);
  const kept = withoutRefused(withoutFormerValues(spec, note), note);
  const renamed = withControllersName(withoutTypha(kept, note));
  const pruned = pruneBySchema(renamed, schema);
  for (const path of pruned.dropped) note(path, "this release does not have the field");
  const value = isObject(pruned.value) ? pruned.value : {};
  return { spec: value, notes, obstacles: obstaclesIn(value, place) };
}

/** Pods may send from further sources, unless the spec says otherwise already. */
export function withFurtherSources(spec: Fields): Fields {
  const network: Fields = fieldsIn(spec, NETWORK_FIELD);
  const features: Fields = fieldsIn(network, "featureControl");
  const featureControl = { allowedSourcePrefixes: true, ...features };
  return { ...spec, [NETWORK_FIELD]: { ...network, featureControl } };
}

/** Of the spec, in the definition of an Installation. */
export function installationSchema(definitions: readonly KubeObject[]): unknown {
  const definition = definitions.find((each) => fieldsIn(each, "spec", "names")["kind"] === "Installation");
  const [version] = listAt(definition, "spec", "versions");
  return fieldsIn(version, "schema", "openAPIV3Schema", "properties")["spec"];
}

type Note = (path: string, why: string) => void;

/** A value that this release does not have, and that nothing depends on. */
const FORMER_VALUES: readonly {
  readonly path: readonly string[];
  readonly isFormer: (value: unknown) => boolean;
  readonly why: string;
}[] = [
  { path: ["flexVolumePath"], isFormer: (value) => value !== "None", why: "there is a CSI driver, not a FlexVolume" },
  {
    path: ["fipsMode"],
    isFormer: (value) => value !== "Disabled",
    why: "the cryptography of the executable is not certified",
  },
  { path: ["nonPrivileged"], isFormer: (value) => value !== "Disabled", why: "the node agent must be privileged" },
  {
    path: ["nodeUpdateStrategy", "type"],
    isFormer: (value) => value !== "RollingUpdate",
    why: 'the pods of the nodes are replaced one after another ("RollingUpdate")',
  },
];

function withoutFormerValues(spec: Fields, note: Note): Fields {
  return FORMER_VALUES.reduce((before, { path, isFormer, why }) => {
    const value = path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), before);
    if (value === undefined || !isFormer(value)) return before;
    note(path.join("."), why);
    return without(before, path);
  }, spec);
}

function withoutRefused(spec: Fields, note: Note): Fields {
  const network: Fields = fieldsIn(spec, NETWORK_FIELD);
  const refused = [
    ...Object.entries(REFUSED_SPEC_FIELDS).map(([name, why]) => [[name], why] as const),
    ...Object.entries(REFUSED_NETWORK_FIELDS).map(([name, why]) => [[NETWORK_FIELD, name], why] as const),
  ].filter(([path]) => (path.length === 1 ? spec : network)[path.at(-1) ?? ""] !== undefined);
  for (const [path, why] of refused)
    note(path.join("."), why.replace(/^is not supported: /, "").replace(/; remove it.*$/, ""));
  return refused.reduce((before, [path]) => without(before, path), spec);
}

function withoutTypha(spec: Fields, note: Note): Fields {
  const { componentResources } = spec;
  if (!Array.isArray(componentResources)) return spec;
  const isKnown = (entry: unknown) => isObject(entry) && COMPONENTS.has(String(entry["componentName"]));
  for (const [index, entry] of componentResources.entries()) {
    if (!isKnown(entry)) note(`componentResources[${index}]`, "there is no such component any more");
  }
  return { ...spec, componentResources: componentResources.filter(isKnown) };
}

const COMPONENTS: ReadonlySet<string> = new Set(["Node", "KubeControllers"]);

/** The container has another name now. */
function withControllersName(spec: Fields): Fields {
  const text = JSON.stringify(spec[CONTROLLERS_FIELD]);
  if (text === undefined) return spec;
  const renamed = text.replaceAll(`"name":${JSON.stringify(FORMER_CONTROLLERS)}`, `"name":"${identity.controllers}"`);
  return { ...spec, [CONTROLLERS_FIELD]: JSON.parse(renamed) };
}

/** What is left and still not valid: a person has to decide. */
function obstaclesIn(spec: Fields, { what, root }: Place): readonly Obstacle[] {
  const { apiVersion, kind } = installation;
  const decoded = installation.decode({ apiVersion, kind, metadata: { name: "default" }, spec });
  if (decoded.ok) return [];
  return decoded.problems.map((problem) => ({
    message: `${what} ${formatProblem({ ...problem, path: problem.path.replace(/^spec/, root) })}`,
    remedy: "change it before the upgrade, and plan again",
  }));
}

function without(value: Fields, path: readonly string[]): Fields {
  const [name = "", ...rest] = path;
  const { [name]: inner, ...others } = value;
  return rest.length > 0 && isObject(inner) ? { ...others, [name]: without(inner, rest) } : others;
}

/** What of a value a definition's schema knows, and the paths of what it does not. Pure. */
interface Pruned {
  readonly value: unknown;
  /** `vendorNetwork.ipPools[0].assignmentMode` */
  readonly dropped: readonly string[];
}

function pruneBySchema(value: unknown, schema: unknown, path = ""): Pruned {
  if (!isObject(schema) || schema["x-kubernetes-preserve-unknown-fields"] === true) return { value, dropped: [] };
  if (Array.isArray(value)) {
    const members = value.map((member, index) => pruneBySchema(member, schema["items"], `${path}[${index}]`));
    return { value: members.map((member) => member.value), dropped: members.flatMap(({ dropped }) => dropped) };
  }
  const { properties, additionalProperties } = schema;
  if (!isObject(value) || (!isObject(properties) && additionalProperties === undefined)) return { value, dropped: [] };
  const members = Object.entries(value).map(([name, member]) => {
    const place = path === "" ? name : `${path}.${name}`;
    const inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    return { name, pruned: inner === undefined ? undefined : pruneBySchema(member, inner, place), place };
  });
  return {
    value: Object.fromEntries(
      members.flatMap(({ name, pruned }) => (pruned === undefined ? [] : [[name, pruned.value]])),
    ),
    dropped: members.flatMap(({ pruned, place }) => pruned?.dropped ?? [place]),
  };
}
