/**
 * The records of IPAM of an earlier release as this one stores them: blocks with every allocation, affinities of nodes, handles,
 * the configuration. What nodes borrow from each other's blocks is recorded, as an ADD of this release does. Pure.
 */
import type { ApiObject } from "../../datastore/kube/api.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix, parsePrefix } from "../../ip/prefix.ts";
import { releaseOrdinals } from "../../ipam/block.ts";
import { readAffinity, writeAffinity } from "../../model/block-affinity.ts";
import { LONGEST_COOLDOWN_SECONDS } from "../../model/cooldown.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE, readBlockObject, writeBlock } from "../../model/ipam-block.ts";
import { ipamConfiguration } from "../../model/ipam-configuration.ts";
import { readHandle, writeHandle } from "../../model/ipam-handle.ts";
import { affinityKey, blockKey, borrowedKey, handleKey, IPAM_CONFIGURATION_KEY } from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import type { Conversion, CopiedRecord } from "./conversion.ts";
import { FORMER_IPAM } from "./former-kinds.ts";
import { formerResource } from "./former-object.ts";

export interface FormerIpam {
  readonly blocks: readonly ApiObject[];
  readonly affinities: readonly ApiObject[];
  readonly handles: readonly ApiObject[];
  readonly configurations: readonly ApiObject[];
}

/** In the order in which an ADD writes them, so that a copy that was interrupted is one that IPAM can finish. */
export function convertIpam(former: FormerIpam): Conversion {
  const blocks = former.blocks.map((object) => reading("IPAMBlock", FORMER_IPAM.blocks, object, readFormerBlock));
  const known = blocks.flatMap(({ value }) => value ?? []);
  const nodes = nodesOfHandles(known);
  const configurations = former.configurations.map((object) =>
    reading("IPAMConfig", FORMER_IPAM.configurations, object, configurationRecord),
  );
  const affinities = former.affinities.map((object) =>
    reading("BlockAffinity", FORMER_IPAM.affinities, object, affinityRecord),
  );
  const handles = former.handles.map((object) =>
    reading("IPAMHandle", FORMER_IPAM.handles, object, (each) => handleRecord(each, nodes)),
  );
  const all = [...configurations, ...affinities, ...handles, ...blocks];
  return {
    records: [
      ...[...configurations, ...affinities].flatMap(({ value }) => value ?? []),
      ...known.flatMap(borrowings),
      ...handles.flatMap(({ value }) => value ?? []),
      ...known.map(blockRecord),
    ],
    notes: all.flatMap(({ notes }) => notes),
    obstacles: all.flatMap(({ obstacles }) => obstacles),
  };
}

interface Reading<Value> extends Pick<Conversion, "notes" | "obstacles"> {
  readonly value?: Value;
}

/** `undefined` from `read`: a writer has marked it as deleted, and it counts as absent. */
function reading<Value>(
  kind: string,
  plural: string,
  object: ApiObject,
  read: (object: ApiObject) => Value | undefined,
): Reading<Value> {
  const what = `${kind} ${quoted(object.metadata.name)}`;
  try {
    const value = read(object);
    if (value === undefined) return { notes: [`${what} is being deleted, and not copied`], obstacles: [] };
    return { value, notes: [], obstacles: [] };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    const remedy = `correct or delete it: kubectl edit ${formerResource(plural)} ${object.metadata.name}`;
    return { notes: [], obstacles: [{ message: `${what} cannot be moved: ${failure.message}`, remedy }] };
  }
}

function readFormerBlock(object: ApiObject): IPAMBlock | undefined {
  const block = readBlockObject(object["spec"], object.metadata.name);
  return block.deleted ? undefined : withoutCooling(block, specOf(object)["attributes"]);
}

/** In a former block an address that rests is still allocated, to an attribute that says when it was released. */
function withoutCooling(block: IPAMBlock, attributes: unknown): IPAMBlock {
  const times = (Array.isArray(attributes) ? attributes : []).map((each) =>
    Date.parse(String(isObject(each) ? each["releasedAt"] : "")),
  );
  const isCooling = (index: number | undefined) => index !== undefined && Number.isFinite(times[index]);
  const ordinals = block.allocations.flatMap((index, ordinal) => (isCooling(index) ? [ordinal] : []));
  // They rest from the last release on.
  const last = Math.max(...times.filter(Number.isFinite));
  return ordinals.length === 0 ? block : releaseOrdinals(block, ordinals, new Date(last));
}

function blockRecord(block: IPAMBlock): CopiedRecord {
  return { key: blockKey(block.cidr), value: writeBlock(block), what: `IPAMBlock ${formatPrefix(block.cidr)}` };
}

function affinityRecord(object: ApiObject): CopiedRecord | undefined {
  const { name } = object.metadata;
  const spec = specOf(object);
  const cidr = typeof spec["cidr"] === "string" ? parsePrefix(spec["cidr"]) : undefined;
  const { node } = spec;
  if (cidr === undefined || typeof node !== "string") throw malformed(name, '"spec" has no "node" or no "cidr"');
  const affinity = readAffinity(JSON.stringify(spec), name, { node, cidr });
  if (affinity.deleted) return undefined;
  const what = `BlockAffinity of node ${quoted(node)} on ${formatPrefix(cidr)}`;
  return { key: affinityKey(node, cidr), value: writeAffinity(affinity), what };
}

function handleRecord(object: ApiObject, nodes: ReadonlyMap<string, string>): CopiedRecord | undefined {
  const { name } = object.metadata;
  const spec = specOf(object);
  const { handleID = name } = spec;
  if (typeof handleID !== "string") throw malformed(name, '"spec.handleID" is not text');
  const handle = readHandle(JSON.stringify(spec), name, handleID);
  if (handle.deleted) return undefined;
  const node = nodes.get(handleID);
  return {
    key: handleKey(handleID),
    value: writeHandle(handle),
    ...(node === undefined ? {} : { node }),
    what: `IPAMHandle ${quoted(handleID)}`,
  };
}

function configurationRecord(object: ApiObject): CopiedRecord | undefined {
  const { strictAffinity = false, autoAllocateBlocks = true, maxBlocksPerHost = 0, ipCooldownSeconds } = specOf(object);
  const decoded = ipamConfiguration.decode({
    apiVersion: ipamConfiguration.apiVersion,
    kind: ipamConfiguration.kind,
    metadata: { name: object.metadata.name },
    spec: {
      strictAffinity,
      autoAllocateBlocks,
      maxBlocksPerHost,
      // Former releases allow any time.
      ...(typeof ipCooldownSeconds === "number" && ipCooldownSeconds > 0
        ? { cooldownSeconds: Math.min(ipCooldownSeconds, LONGEST_COOLDOWN_SECONDS) }
        : {}),
    },
  });
  if (!decoded.ok) throw malformed(object.metadata.name, decoded.problems.map(({ message }) => message).join("; "));
  return { key: IPAM_CONFIGURATION_KEY, value: ipamConfiguration.write(decoded.value), what: "IPAMConfiguration" };
}

/** On which node each handle has its addresses: the search for leaks of a node looks at its own handles only. */
function nodesOfHandles(blocks: readonly IPAMBlock[]): ReadonlyMap<string, string> {
  return new Map(
    blocks.flatMap(({ attributes }) =>
      attributes.flatMap(({ handleId, secondary }) => {
        const node = secondary[NODE_ATTRIBUTE];
        return handleId === undefined || node === undefined ? [] : [[handleId, node] as const];
      }),
    ),
  );
}

/** Nodes with addresses in a block that is not theirs. */
function borrowings(block: IPAMBlock): readonly CopiedRecord[] {
  const used = new Set(block.allocations.filter((index) => index !== undefined));
  const nodes = block.attributes.flatMap(({ secondary }, index) =>
    used.has(index) ? (secondary[NODE_ATTRIBUTE] ?? []) : [],
  );
  const owner = affineNode(block);
  return [...new Set(nodes)]
    .filter((node) => node !== owner)
    .map((node) => ({
      key: borrowedKey(node, block.cidr),
      value: "{}",
      what: `what node ${quoted(node)} borrows from ${formatPrefix(block.cidr)}`,
    }));
}

function specOf(object: ApiObject): Readonly<Record<string, unknown>> {
  const { spec } = object;
  if (isObject(spec)) return spec;
  throw malformed(object.metadata.name, 'it has no "spec"');
}

function malformed(name: string, reason: string): PluginError {
  return new PluginError("record-malformed", `Cannot read ${quoted(name)}: ${reason}`);
}
