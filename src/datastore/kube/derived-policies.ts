/**
 * Policies: those of this product are custom resources, those of the orchestrator are converted on every read and
 * cannot be written here. Both have keys of one kind, so that whoever follows it sees all of them.
 *
 *   networkpolicies/NAMESPACE/NAME               vendor.org             NetworkPolicy
 *   networkpolicies/NAMESPACE/knp.default.NAME   networking.k8s.io/v1   NetworkPolicy, converted
 */
import { PluginError } from "../../errors.ts";
import { API_VERSION } from "../../identity.ts";
import { parseKey, resourceKey } from "../../model/keys.ts";
import { convertPolicy, ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";
import { type Collection, type KindMapping, type ObjectRecord, readOnly } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PATH = "/apis/networking.k8s.io/v1";
const PLURAL = "networkpolicies";

/** Records of a kind that are derived from objects of the orchestrator, beside those that are custom resources. */
export interface DerivedRecords extends Pick<KindMapping, "path"> {
  /** Whether a record with this name is derived. */
  readonly owns: (name: string) => boolean;
  readonly collection: (prefix: string) => Collection;
  readonly record: (object: ApiObject) => ObjectRecord;
  /** After "with the Kubernetes API as the datastore, ". */
  readonly refusal: { readonly state: string; readonly details: string };
}

/** `own`: the mapping of the custom resources. */
export function withDerivedRecords(own: KindMapping, derived: DerivedRecords): KindMapping {
  const isDerived = (key: string) => {
    const parts = parseKey(key);
    return parts?.kind === "resource" && derived.owns(parts.name);
  };
  const requireOwn = (key: string) => {
    if (!isDerived(key)) return key;
    const { state, details } = derived.refusal;
    const message = `Cannot write ${quoted(key)}: with the Kubernetes API as the datastore, ${state}`;
    throw new PluginError("resource-invalid", message, { details });
  };
  // A custom resource with the name of a derived record is not one.
  const ownRecord = (object: ApiObject) => (derived.owns(object.metadata.name) ? undefined : own.record(object));
  return {
    ...own,
    path: (key) => (isDerived(key) ? derived.path(key) : own.path(key)),
    collections: (prefix) => [...own.collections(prefix), derived.collection(prefix)],
    record: (object) => (isOwn(object) ? ownRecord(object) : derived.record(object)),
    create: (key, ...others) => own.create(requireOwn(key), ...others),
    update: (key, ...others) => own.update(requireOwn(key), ...others),
    remove: (key, ...others) => own.remove(requireOwn(key), ...others),
  };
}

export function withDerivedPolicies(own: KindMapping): KindMapping {
  return withDerivedRecords(own, {
    owns: (name) => name.startsWith(ORCHESTRATOR_POLICY),
    path: derivedPath,
    collection: (prefix) => derivedCollection(prefix, own.prefix),
    record: derivedRecord,
    refusal: {
      state: `policies named ${ORCHESTRATOR_POLICY}* are derived from its own NetworkPolicies`,
      details: "change the NetworkPolicy of networking.k8s.io with kubectl, or use another name",
    },
  });
}

/** The orchestrator's policies alone, for whoever copies them. `prefix`: of the kind. */
export function orchestratorPolicies(prefix: string): KindMapping {
  return {
    prefix,
    path: derivedPath,
    collections: (wanted) => [derivedCollection(wanted, prefix)],
    record: derivedRecord,
    ...readOnly("it is a policy of the orchestrator"),
  };
}

/** The members of a list of the orchestrator's own objects have no `apiVersion`. */
function isOwn(object: ApiObject): boolean {
  return object["apiVersion"] === API_VERSION;
}

function derivedRecord(object: ApiObject): ObjectRecord {
  const policy = convertPolicy(object);
  return { key: resourceKey(PLURAL, policy.metadata), value: JSON.stringify(policy) };
}

function derivedPath(key: string): string | undefined {
  const parts = parseKey(key);
  if (parts?.kind !== "resource" || parts.namespace === undefined || !isObjectName(parts.namespace)) return undefined;
  const name = parts.name.slice(ORCHESTRATOR_POLICY.length);
  return isObjectName(name) ? `${PATH}/namespaces/${parts.namespace}/${PLURAL}/${name}` : undefined;
}

function derivedCollection(prefix: string, all: string): Collection {
  const [namespace = "", ...rest] = prefix.slice(all.length).split("/");
  const isOfOne = rest.length > 0 && isObjectName(namespace);
  return { path: isOfOne ? `${PATH}/namespaces/${namespace}/${PLURAL}` : `${PATH}/${PLURAL}` };
}
