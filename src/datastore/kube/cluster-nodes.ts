/**
 * A Node is the node of the cluster: its labels and its existence belong to the
 * cluster. What this product adds is in annotations: those of the record, and
 * its spec as JSON in one of its own. They are written with its status, which a role
 * can allow without the rest of the node. The machine and the addresses that its kubelet
 * reported are part of the record too, but cannot be written.
 */
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { formatPrefix, parsePrefix } from "../../ip/prefix.ts";
import { podCidrsIn } from "../../kube/orchestrator-node.ts";
import { nameInKey, parseKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import { parseStored } from "../../model/stored.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";
import type { KindMapping, Writing } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PATH = "/api/v1/nodes";
const SPEC = `${identity.labelPrefix}node-spec`;

type Texts = Readonly<Record<string, string>>;

export const clusterNodes: KindMapping = {
  prefix: resourcesPrefix("nodes"),
  path: pathOf,
  collections: () => [{ path: PATH }],
  record: (node) => ({
    key: resourceKey("nodes", { name: node.metadata.name }),
    value: JSON.stringify(nodeOf(node)),
  }),
  create: (key) => {
    const fix = `a kubelet creates it; if that is not the name of this host in the cluster, set "nodename" in the network config`;
    throw notOurs(key, "create", fix);
  },
  neededStatus: (status) => ({
    addresses: [...reportedAddresses(status, "InternalIP"), ...reportedAddresses(status, "ExternalIP")],
  }),
  update: annotate,
  remove: (key) => {
    throw notOurs(key, "delete", `delete it with "kubectl delete node"`);
  },
};

function pathOf(key: string): string | undefined {
  const parts = parseKey(key);
  if (parts?.kind !== "resource" || parts.namespace !== undefined) return undefined;
  return isObjectName(parts.name) ? `${PATH}/${parts.name}` : undefined;
}

function nodeOf({ metadata, status, spec: assigned }: ApiObject) {
  const { name, uid, creationTimestamp, labels = {} } = metadata;
  const { [SPEC]: spec, ...annotations } = metadata.annotations ?? {};
  const { podCIDRs: claimed, addresses, ...recorded } = specIn(spec);
  const podCIDRs = splitPodCidrs(claimed, assigned);
  const others = {
    ...kubeletStatusOf(status),
    ...(podCIDRs.refused.length === 0 ? {} : { unassignedPodCIDRs: podCIDRs.refused }),
  };
  return {
    apiVersion: API_VERSION,
    kind: "Node",
    metadata: { name, uid, creationTimestamp, labels, annotations },
    spec: {
      ...recorded,
      ...addressesField(addresses, status),
      ...(podCIDRs.counted.length === 0 ? {} : { podCIDRs: podCIDRs.counted }),
    },
    ...(Object.keys(others).length === 0 ? {} : { status: others }),
  };
}

/**
 * Those of the annotation that the orchestrator has assigned to the node: others would lead packets of any network there,
 * and a token of the node can write the annotation, but not the spec of the Node.
 */
function splitPodCidrs(recorded: unknown, node: unknown) {
  const claimed = Array.isArray(recorded) ? recorded.filter((each) => typeof each === "string") : [];
  if (claimed.length === 0) return { counted: [], refused: [] };
  const assigned = new Set(podCidrsIn(node).map(canonical));
  return {
    counted: claimed.filter((each) => assigned.has(canonical(each))),
    refused: claimed.filter((each) => !assigned.has(canonical(each))),
  };
}

function canonical(text: string): string {
  const prefix = parsePrefix(text);
  return prefix === undefined ? text : formatPrefix(prefix);
}

/** What only the kubelet can write. */
function kubeletStatusOf(status: unknown): object {
  const { nodeInfo } = isObject(status) ? status : {};
  const { machineID } = isObject(nodeInfo) ? nodeInfo : {};
  const internal = reportedAddresses(status, "InternalIP");
  const addresses = internal.flatMap(({ address }) => (typeof address === "string" ? address : []));
  return {
    ...(typeof machineID === "string" && machineID !== "" ? { kubeletMachineID: machineID } : {}),
    ...(addresses.length === 0 ? {} : { kubeletAddresses: addresses }),
  };
}

/** Those of the record, or else what the kubelet reported; absent if there are none. Nobody else knows the external ones. */
function addressesField(recorded: unknown, status: unknown): object {
  const [internal, external] = [reportedAddresses(status, "InternalIP"), externalAddresses(status)];
  const listed = recorded ?? (internal.length + external.length === 0 ? undefined : internal);
  if (!Array.isArray(listed)) return listed === undefined ? {} : { addresses: listed };
  return { addresses: [...listed, ...external] };
}

function externalAddresses(status: unknown): readonly object[] {
  // A provider may report a name there.
  return reportedAddresses(status, "ExternalIP").filter(({ address }) => parseAddress(String(address)) !== undefined);
}

function reportedAddresses(status: unknown, wanted: "InternalIP" | "ExternalIP") {
  const { addresses } = isObject(status) ? status : {};
  const all = Array.isArray(addresses) ? addresses.filter(isObject) : [];
  return all.filter(({ type }) => type === wanted).map(({ address, type }) => ({ address, type }));
}

function specIn(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const spec: unknown = text === undefined ? {} : parseJson(text);
    return isObject(spec) ? spec : {};
  } catch {
    return {};
  }
}

/** Without the addresses that the kubelet reports: they would be old soon. */
function ownSpec(spec: unknown, status: unknown): object {
  const { addresses, ...own } = isObject(spec) ? spec : {};
  const isReported = Bun.deepEquals({ addresses }, addressesField(undefined, status));
  if (addresses === undefined || isReported) return own;
  const external = externalAddresses(status);
  const isExternal = (address: unknown) => external.some((each) => Bun.deepEquals(each, address));
  return { ...own, addresses: Array.isArray(addresses) ? addresses.filter((each) => !isExternal(each)) : addresses };
}

function annotate(key: string, value: string, existing: ApiObject): Writing {
  const node = parseStored(value, "Node", key);
  const { metadata = {}, spec = {} } = isObject(node) ? node : {};
  const { labels = {}, annotations = {} } = isObject(metadata) ? metadata : {};
  if (!Bun.deepEquals(labels, existing.metadata.labels ?? {})) {
    throw notOurs(key, "change the labels of", 'use "kubectl label node"');
  }
  const own = ownSpec(spec, existing["status"]);
  const hasSpec = !Bun.deepEquals(own, {}) || existing.metadata.annotations?.[SPEC] !== undefined;
  const wanted: Texts = {
    ...(isObject(annotations) ? textsIn(annotations) : {}),
    ...(hasSpec ? { [SPEC]: JSON.stringify(own) } : {}),
  };
  const removed = Object.keys(existing.metadata.annotations ?? {}).filter((name) => wanted[name] === undefined);
  const patch = {
    metadata: {
      uid: existing.metadata.uid,
      resourceVersion: existing.metadata.resourceVersion,
      annotations: { ...wanted, ...Object.fromEntries(removed.map((name) => [name, null])) },
    },
  };
  return {
    request: {
      method: "PATCH",
      path: `${pathOf(key) ?? PATH}/status`,
      contentType: "application/merge-patch+json",
      body: JSON.stringify(patch),
    },
    isResult: (found) => Bun.deepEquals(found.metadata.annotations, wanted),
  };
}

function textsIn(fields: Readonly<Record<string, unknown>>): Texts {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
}

function notOurs(key: string, action: string, fix: string): PluginError {
  return new PluginError(
    "resource-invalid",
    `Cannot ${action} Node ${quoted(nameInKey(key))}: with the Kubernetes API as the datastore, a Node is the node of the cluster`,
    { details: fix },
  );
}
