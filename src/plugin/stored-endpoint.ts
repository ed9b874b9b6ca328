/**
 * Decodes only the fields of a stored endpoint that the plugin needs: building the
 * complete decoder would take longer than the rest of a DEL.
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import type { Change, Entry } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { type Prefix, parsePrefixOrAddress } from "../ip/prefix.ts";
import {
  addressesWithoutIpam,
  MAC_ANNOTATION,
  NETWORK_ANNOTATION,
  WITHOUT_IPAM_ANNOTATION,
} from "../model/endpoint-labels.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import type { Workload } from "./workload.ts";

export interface StoredEndpoint {
  readonly whole: JsonObject;
  readonly uid: string | undefined;
  readonly creationTimestamp: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly network: string | undefined;
  readonly node: string | undefined;
  readonly containerId: string | undefined;
  readonly ifname: string | undefined;
  readonly interfaceName: string | undefined;
  readonly mac: string | undefined;
  /** The MAC that an annotation of the pod requests. */
  readonly annotatedMac: string | undefined;
  readonly ipNetworks: readonly string[];
  /** Those of its addresses that IPAM does not record. */
  readonly withoutIpam: ReadonlySet<string>;
  /** Sources that it may use beside its addresses. */
  readonly sourcePrefixes: readonly Prefix[];
}

export function readStoredEndpoint({ key, value }: Entry): StoredEndpoint {
  const whole = parsed(value, key);
  const metadata = partOf(whole, "metadata");
  const spec = partOf(whole, "spec");
  const annotations = partOf(metadata, "annotations");
  return {
    whole,
    uid: text(metadata["uid"]),
    creationTimestamp: text(metadata["creationTimestamp"]),
    labels: labelsIn(metadata["labels"]),
    network: text(annotations[NETWORK_ANNOTATION]),
    node: text(spec["node"]),
    containerId: text(spec["containerID"]),
    ifname: text(spec["endpoint"]),
    interfaceName: text(spec["interfaceName"]),
    mac: text(spec["mac"]),
    annotatedMac: text(annotations[MAC_ANNOTATION]),
    ipNetworks: textsOf(spec["ipNetworks"]),
    withoutIpam: addressesWithoutIpam(text(annotations[WITHOUT_IPAM_ANNOTATION])),
    sourcePrefixes: textsOf(spec["allowSpoofedSourcePrefixes"]).flatMap((each) => parsePrefixOrAddress(each) ?? []),
  };
}

/** A newer sandbox of the same pod has an endpoint of the same name, and so may another network: both are kept. */
export function endpointRemoval(workload: Workload, held: Entry | undefined): readonly Change[] {
  if (held === undefined) return [];
  const { containerId, ifname, network } = readStoredEndpoint(held);
  if (containerId !== workload.containerId) return [];
  if ((ifname ?? workload.ifname) !== workload.ifname || (network ?? workload.network) !== workload.network) return [];
  return [{ kind: "delete", key: held.key, revision: held.revision }];
}

/**
 * Called by each attempt of an ADD to record the endpoint; throws if another container has recorded its own since the first
 * attempt. That may be the next sandbox of the pod, or of a pod of the same name that was created since: it would be left
 * without an endpoint, and without policy. If it is an earlier one, the runtime's next attempt replaces it.
 */
export function ownerGuard({ containerId, endpointName }: Workload): (held: Entry | undefined) => void {
  let first: { readonly owner: string | undefined } | undefined;
  return (held) => {
    const owner = held && readStoredEndpoint(held).containerId;
    first ??= { owner };
    if (owner === undefined || owner === first.owner || owner === containerId) return;
    throw new PluginError(
      "try-again-later",
      `Cannot record endpoint ${quoted(endpointName)}: another container, ${quoted(owner)}, has recorded it during the call`,
    );
  };
}

function parsed(value: string, key: string): JsonObject {
  try {
    const whole: unknown = parseJson(value);
    if (isJsonObject(whole)) return whole;
  } catch {
    // Reported below.
  }
  throw new PluginError("record-malformed", `Cannot read WorkloadEndpoint at "${key}": it is not a JSON object`);
}

function partOf(object: JsonObject, field: string): JsonObject {
  const part = object[field];
  return isJsonObject(part) ? part : {};
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function labelsIn(value: unknown): StoredEndpoint["labels"] {
  if (!isJsonObject(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).filter((label): label is [string, string] => typeof label[1] === "string"),
  );
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
