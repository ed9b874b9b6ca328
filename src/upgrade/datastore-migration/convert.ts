/**
 * What the records of etcd become in the orchestrator's API. Not among them is what the API has already in another form:
 * workload endpoints (pods), profiles (namespaces and accounts) and copies of the orchestrator's own policies; nor labels of
 * containers, which are not pods. Pure.
 */
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { clusterPolicyName } from "../../model/cluster-network-policy.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE, readBlock, writeBlock } from "../../model/ipam-block.ts";
import { affinityKey, blockKey, borrowedKey, handleKey, parseKey } from "../../model/keys.ts";
import {
  ADDRESS_LIST,
  CLUSTER_INFORMATION,
  CONTAINER_LABELS,
  NODE,
  PROFILE,
  type PublicKind,
} from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { ACCOUNT_PROFILE, NAMESPACE_PROFILE } from "../../model/orchestrator-profile.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { FORMER_UID } from "../former-names.ts";
import { type Conversion, type CopiedRecord, withPoolProtection } from "../former-storage/conversion.ts";
import { FORMER_RESOURCES } from "../former-storage/former-kinds.ts";
import { IPAM_PREFIXES } from "../former-storage/stored-records.ts";
import {
  type NodeNames,
  nodeNames,
  renamed,
  renamedAffinity,
  renamedBlock,
  renamedHandle,
  renamedResource,
  renamedSpec,
} from "./node-names.ts";

const RUN_ANNOTATION = `${identity.labelPrefix}migration`;
/** Earlier releases had no lists of addresses. */
const KINDS: readonly PublicKind[] = [...FORMER_RESOURCES.map(({ target }) => target), ADDRESS_LIST];

export const MIGRATED_PREFIXES: readonly string[] = [...KINDS.map((kind) => kind.prefix()), ...IPAM_PREFIXES];

export interface MigratedData extends Conversion {
  /** Nodes of the orchestrator, with what the product stores of them; their existence and labels are the orchestrator's. */
  readonly nodes: readonly CopiedRecord[];
}

export function convertRecords(entries: readonly Entry[], run: string): MigratedData {
  const failures: string[] = [];
  const reading = <T>(key: string, read: () => T): readonly T[] => {
    try {
      return [read()];
    } catch (failure) {
      if (!(failure instanceof PluginError || failure instanceof SyntaxError)) throw failure;
      failures.push(`${quoted(key)} cannot be read: ${failure.message}`);
      return [];
    }
  };
  const of = (prefix: string) => entries.filter(({ key }) => key.startsWith(prefix));
  const nodes = of(NODE.prefix()).flatMap(({ key, value }) => reading(key, () => NODE.codec.read(value, key) as Node));
  const { names, obstacles } = nodeNames(nodes);
  const resources = KINDS.flatMap((kind) =>
    of(kind.prefix()).flatMap(({ key, value }) =>
      reading(key, () => resourceRecord(kind, value, { names, run })).flat(),
    ),
  );
  const ipam = ipamRecords(entries, names, reading);
  return {
    records: withPoolProtection([...resources, ...ipam]),
    nodes: nodes.flatMap((node) => nodeRecord(node, names, run)),
    notes: [...leftOut(entries), ...labelNotes(nodes)],
    obstacles: [
      ...obstacles,
      ...failures.map((message) => ({ message, remedy: `correct or delete it with ${identity.adminTool}` })),
    ],
  };
}

interface Site {
  readonly names: NodeNames;
  readonly run: string;
}

function resourceRecord(kind: PublicKind, value: string, { names, run }: Site): readonly CopiedRecord[] {
  const resource = parseJson(value);
  if (!isObject(resource) || !isObject(resource["metadata"]))
    throw new PluginError("record-malformed", "it is not a resource");
  const { name: before, namespace, labels, annotations, uid } = resource["metadata"];
  if (kind.plural === "networkpolicies" && String(before).startsWith(ORCHESTRATOR_POLICY)) return [];
  if (kind.plural === "globalnetworkpolicies" && clusterPolicyName(String(before)) !== undefined) return [];
  const name = renamedResource(String(before), kind.plural, names);
  const marks = {
    ...(typeof uid === "string" ? { [FORMER_UID]: uid } : { [FORMER_UID]: "unknown" }),
    [RUN_ANNOTATION]: run,
  };
  const place = { name, ...(typeof namespace === "string" ? { namespace } : {}) };
  const metadata = {
    ...place,
    ...(labels === undefined ? {} : { labels }),
    annotations: { ...(isObject(annotations) ? annotations : {}), ...marks },
  };
  const spec = kind === CLUSTER_INFORMATION ? lockedSpec(resource["spec"]) : renamedSpec(resource["spec"], names);
  const record = { ...resource, metadata, spec };
  return [{ key: kind.key(place), value: JSON.stringify(record), what: `${kind.kind} ${quoted(name)}` }];
}

function lockedSpec(spec: unknown): object {
  return { ...(isObject(spec) ? spec : {}), datastoreReady: false };
}

/** In the order in which an ADD writes them, so that IPAM could finish a copy that was interrupted. */
function ipamRecords(
  entries: readonly Entry[],
  names: NodeNames,
  reading: <T>(key: string, read: () => T) => readonly T[],
): readonly CopiedRecord[] {
  const nodeRecords: CopiedRecord[] = [];
  const handles: CopiedRecord[] = [];
  const blocks: IPAMBlock[] = [];
  for (const { key, value } of entries) {
    const parts = parseKey(key);
    switch (parts?.kind) {
      case "ipam-configuration":
        nodeRecords.push({ key, value, what: "IPAMConfiguration" });
        break;
      case "affinity": {
        const node = renamed(names, parts.node);
        const what = `BlockAffinity of node ${quoted(node)} on ${formatPrefix(parts.cidr)}`;
        const text = reading(key, () => renamedAffinity(value, key, parts));
        nodeRecords.push(...text.map((each) => ({ key: affinityKey(node, parts.cidr), value: each, what })));
        break;
      }
      case "borrowed": {
        const node = renamed(names, parts.node);
        const what = `what node ${quoted(node)} borrows from ${formatPrefix(parts.cidr)}`;
        nodeRecords.push({ key: borrowedKey(node, parts.cidr), value: value === "" ? "{}" : value, what });
        break;
      }
      case "handle": {
        const handleId = renamedHandle(parts.handleId, names);
        handles.push({ key: handleKey(handleId), value, what: `IPAMHandle ${quoted(handleId)}` });
        break;
      }
      case "block":
        blocks.push(...reading(key, () => renamedBlock(readBlock(value, key), names)));
        break;
    }
  }
  const nodesOf = nodesOfHandles(blocks);
  return [
    ...nodeRecords,
    ...handles.map((handle) => withNode(handle, nodesOf)),
    ...blocks.map((block) => ({
      key: blockKey(block.cidr),
      value: writeBlock(block),
      what: `IPAMBlock ${formatPrefix(block.cidr)}`,
    })),
  ];
}

/** The search for leaks of a node looks at its own handles only. */
function nodesOfHandles(blocks: readonly IPAMBlock[]): ReadonlyMap<string, string> {
  const pairs = blocks.flatMap((block) =>
    block.attributes.flatMap(({ handleId, secondary }) => {
      const node = secondary[NODE_ATTRIBUTE] ?? affineNode(block);
      return handleId === undefined || node === undefined ? [] : [[handleKey(handleId), node] as const];
    }),
  );
  return new Map(pairs);
}

function withNode(record: CopiedRecord, nodes: ReadonlyMap<string, string>): CopiedRecord {
  const node = nodes.get(record.key);
  return node === undefined ? record : { ...record, node };
}

/** Addresses and labels come from the orchestrator. */
function nodeRecord({ metadata, spec }: Node, names: NodeNames, run: string): readonly CopiedRecord[] {
  const name = names.get(metadata.name);
  if (name === undefined) return [];
  const { orchRefs: _, addresses: __, ...own } = spec;
  const value = JSON.stringify({ annotations: { ...metadata.annotations, [RUN_ANNOTATION]: run }, spec: own });
  return [{ key: NODE.key({ name }), value, what: `Node ${quoted(name)}` }];
}

function leftOut(entries: readonly Entry[]): readonly string[] {
  const named = (plural: string) =>
    entries.flatMap(({ key }) => {
      const parts = parseKey(key);
      return parts?.kind === "resource" && parts.plural === plural ? [parts.name] : [];
    });
  const isDerived = (name: string) => name.startsWith(NAMESPACE_PROFILE) || name.startsWith(ACCOUNT_PROFILE);
  const profiles = named(PROFILE.plural).filter((name) => !isDerived(name));
  return [
    ...profiles.map(
      (name) => `Profile ${quoted(name)} is left out: the Kubernetes API has only those of namespaces and accounts`,
    ),
    ...named(CONTAINER_LABELS.plural).map(
      (name) => `ContainerLabels ${quoted(name)} is left out: all workloads of the Kubernetes API are pods`,
    ),
  ];
}

/** The controllers copy labels from the orchestrator: only others would be lost. */
function labelNotes(nodes: readonly Node[]): readonly string[] {
  return nodes
    .filter(({ metadata }) => Object.keys(metadata.labels ?? {}).length > 0)
    .map(({ metadata }) => {
      const labels = Object.entries(metadata.labels ?? {}).map(([name, value]) => `${name}=${value}`);
      return `labels of Node ${quoted(metadata.name)} are not imported, the node of the orchestrator must have those that selectors use: ${labels.join(", ")}`;
    });
}
