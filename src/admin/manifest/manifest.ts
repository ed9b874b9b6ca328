/**
 * Decodes the text of a file to resources: one or many documents, YAML or JSON,
 * including lists of resources. All problems of all documents are reported
 * together, and nothing is done if there is any.
 */

import type { ConfigPath } from "../../config/problem.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { convertClusterPolicy } from "../../model/cluster-network-policy.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { ResourceName } from "../../model/keys.ts";
import { findKind } from "../../model/kinds.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { convertPolicy } from "../../model/orchestrator-policy.ts";
import { formatProblem, type Problem } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { OTHER_GROUP_HINT, otherGroupOf } from "../convert/other-group.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { kubectlHint } from "../kinds/kubernetes-kinds.ts";
import { USUAL_NAMESPACE } from "../resources/options.ts";
import { splitDocuments } from "./documents.ts";
import { parseDocument } from "./parse-document.ts";

/** A resource given by the user. */
export interface GivenResource {
  readonly kind: AdminKind;
  readonly name: ResourceName;
  readonly resource: Resource;
  /** A policy of the orchestrator, as it is converted when it is read: it cannot be written. */
  readonly ofOrchestrator?: true;
}

export interface Manifest {
  /** The file, or `stdin`. */
  readonly place: string;
  readonly text: string;
}

export interface Reading {
  /** Of all namespaced resources; if absent, resources without a namespace are in the default one. */
  readonly namespace?: string | undefined;
  /** Whether policies of the orchestrator are read too. */
  readonly withOrchestrators?: true;
}

export function decodeManifests(manifests: readonly Manifest[], reading: Reading = {}): readonly GivenResource[] {
  const decoded = manifests.flatMap((manifest) => decodeManifest(manifest, reading));
  const problems = decoded.flatMap((each) => (each.ok ? [] : each.problems));
  if (problems.length > 0) {
    throw new PluginError("resource-invalid", `Cannot use the given resources:\n  ${problems.join("\n  ")}`);
  }
  return decoded.flatMap((each) => (each.ok ? [each.given] : []));
}

function decodeManifest(manifest: Manifest, reading: Reading): readonly Decoded[] {
  return parseManifest(manifest).map((each) => (each.ok ? decodeDocument(each, reading) : each));
}

type Parsed =
  | {
      readonly ok: true;
      readonly place: string;
      readonly value: unknown;
      /** As `place`, with the line of a field: `pools.yaml:12 (document 2)`. */
      placeOf(path: string): string;
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** The documents of a text and the members of their lists, not decoded. */
export function parseManifest({ place, text }: Manifest): readonly Parsed[] {
  const documents = splitDocuments(text);
  return documents.flatMap((document): readonly Parsed[] => {
    const part = documents.length === 1 ? [] : [`document ${document.number}`];
    const parsed = parseDocument(document);
    if (!parsed.ok) return [refusal(placeText(place, part), parsed.problems)];
    return membersOf(parsed.value).map(({ value, path }) => ({
      ok: true,
      place: placeText(place, path === "" ? part : [...part, path]),
      value,
      placeOf: (field) => {
        const line = parsed.lineOf([...stepsOf(path, parsed.value), ...stepsOf(field, value)]);
        return placeText(`${place}:${line}`, path === "" ? part : [...part, path]);
      },
    }));
  });
}

/** `spec.ingress[0].action`: the names and numbers in it. A name in `value` may contain dots: `metadata.labels.a.b/c`. */
function stepsOf(path: string, value: unknown): ConfigPath {
  const rest = path.replace(/^\./, "");
  if (rest === "") return [];
  const index = /^\[(\d+)\]/.exec(rest);
  if (index !== null) return [index[1] ?? "", ...stepsOf(rest.slice(index[0].length), memberOf(value, index[1] ?? ""))];
  const known = isObject(value) ? Object.keys(value).filter((name) => isFirstIn(rest, name)) : [];
  const guess = /^[^.[]+/.exec(rest)?.[0] ?? rest;
  const name = known.reduce((longest, each) => (each.length > longest.length ? each : longest), known[0] ?? guess);
  return [name, ...stepsOf(rest.slice(name.length), memberOf(value, name))];
}

function isFirstIn(path: string, name: string): boolean {
  return name !== "" && path.startsWith(name) && /^(?:[.[]|$)/.test(path.slice(name.length));
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value[Number(name)];
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** `pools.yaml`, or `pools.yaml (document 2, items[3])`. */
function placeText(place: string, within: readonly string[]): string {
  return within.length === 0 ? place : `${place} (${within.join(", ")})`;
}

interface Member {
  readonly value: unknown;
  /** The path in its document: `items[3]`; empty for the whole document. */
  readonly path: string;
}

/** The members of a list or of an object of kind `…List`; none for an empty document. */
function membersOf(value: unknown, path = ""): readonly Member[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((member, index) => membersOf(member, `${path}[${index}]`));
  const isList = isObject(value) && typeof value["kind"] === "string" && value["kind"].endsWith("List");
  if (!isList || !Array.isArray(value["items"])) return [{ value, path }];
  return membersOf(value["items"], path === "" ? "items" : `${path}.items`);
}

type Decoded =
  | { readonly ok: true; readonly given: GivenResource }
  | { readonly ok: false; readonly problems: readonly string[] };

function decodeDocument(
  { value: document, placeOf }: Extract<Parsed, { ok: true }>,
  { namespace, withOrchestrators }: Reading,
): Decoded {
  const refuse = (problems: readonly Problem[], hint = ""): Decoded => ({
    ok: false,
    problems: problems.map((problem) => `${placeOf(problem.path)}: ${formatProblem(problem)}${hint}`),
  });
  const at = (path: string, message: string): Problem => ({ path, value: undefined, message });
  if (!isObject(document)) return refuse([at("", "it is not an object")]);
  const word = document["kind"];
  if (typeof word !== "string") return refuse([at("kind", "is required")]);
  if (withOrchestrators === true && document["apiVersion"] === CLUSTER_POLICY_VERSION) {
    const { metadata, spec } = document;
    const kind = findKind(ADMIN_KINDS, globalNetworkPolicy.kind);
    if (word !== "ClusterNetworkPolicy" || kind === undefined) return refuse([at("kind", unknownKind(word))]);
    if (!isObject(metadata) || typeof metadata["name"] !== "string")
      return refuse([at("metadata.name", "is required")]);
    const policy = convertClusterPolicy({ metadata: { name: metadata["name"] }, spec });
    return { ok: true, given: { ...givenResource(kind, policy, USUAL_NAMESPACE), ofOrchestrator: true } };
  }
  const kind = findKind(ADMIN_KINDS, word);
  const otherGroupHint = otherGroupOf(document) === undefined ? "" : OTHER_GROUP_HINT;
  if (!kind) return refuse([at("kind", unknownKind(word))], otherGroupHint);
  if (withOrchestrators === true && word === networkPolicy.kind && ORCHESTRATOR_POLICY.has(document["apiVersion"])) {
    const { metadata, spec } = document;
    if (!isObject(metadata) || typeof metadata["name"] !== "string")
      return refuse([at("metadata.name", "is required")]);
    const { name, namespace: own } = metadata;
    const problem = conflict(own, namespace);
    if (problem !== undefined) return refuse([problem]);
    const place = typeof own === "string" ? own : (namespace ?? USUAL_NAMESPACE);
    const policy = convertPolicy({ metadata: { name: String(name), namespace: place }, spec });
    return { ok: true, given: { ...givenResource(kind, policy, place), ofOrchestrator: true } };
  }

  const decoded = kind.codec.decode(document);
  const { apiVersion } = document;
  const missing = apiVersion === undefined || apiVersion === null || apiVersion === "";
  if (missing) {
    const others = decoded.ok ? [] : decoded.problems.filter(({ path }) => !path.startsWith("apiVersion"));
    return refuse([at("apiVersion", `is missing; write "${kind.codec.apiVersion}"`), ...others]);
  }
  if (!decoded.ok) {
    // A resource of another program may have any fields.
    const foreign = decoded.problems.filter(({ path }) => path === "apiVersion");
    const ownHint = ORCHESTRATOR_POLICY.has(apiVersion) ? CONVERT_HINT : otherGroupHint;
    return foreign.length > 0 ? refuse(foreign, ownHint) : refuse(decoded.problems);
  }
  const problem = conflict(decoded.value.metadata.namespace, namespace);
  if (problem !== undefined) return refuse([problem]);
  return { ok: true, given: givenResource(kind, decoded.value, namespace ?? USUAL_NAMESPACE) };
}

function conflict(own: unknown, namespace: string | undefined): Problem | undefined {
  if (own === undefined || namespace === undefined || own === namespace) return undefined;
  const message = `does not match --namespace ${namespace}; use --namespace ${own}, or leave it out`;
  return { path: "metadata.namespace", value: own, message };
}

const ORCHESTRATOR_POLICY: ReadonlySet<unknown> = new Set(["networking.k8s.io/v1", "extensions/v1beta1"]);
const CLUSTER_POLICY_VERSION = "policy.networking.k8s.io/v1alpha2";
const CONVERT_HINT = `; a policy of the orchestrator is applied with kubectl, or converted: ${identity.adminTool} convert`;

function refusal(place: string, problems: readonly string[]): Parsed & { readonly ok: false } {
  return { ok: false, problems: problems.map((problem) => `${place}: ${problem}`) };
}

/** Sets the namespace of a namespaced resource that does not have one. */
export function givenResource(kind: AdminKind, resource: Resource, namespace: string): GivenResource {
  const { name, namespace: own } = resource.metadata;
  if (!kind.namespaced) return { kind, name: { name }, resource };
  const place = own ?? namespace;
  return {
    kind,
    name: { name, namespace: place },
    resource: { ...resource, metadata: { ...resource.metadata, namespace: place } },
  };
}

function unknownKind(word: string): string {
  const hint = kubectlHint(word, "apply -f FILE");
  if (hint !== undefined) return `${quoted(word)} is not a kind of this tool: ${hint}`;
  const kinds = ADMIN_KINDS.map(({ kind }) => kind);
  const nearest = nearestName(word, kinds);
  return `${quoted(word)} is not a known kind; ${nearest === undefined ? `use ${kinds.join(", ")}` : `did you mean "${nearest}"?`}`;
}
