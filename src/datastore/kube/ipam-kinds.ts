/**
 * The records of the IPAM as custom resources. Their text is the `spec`, with
 * what only the key says in the other stores added: the API cannot take an
 * identity apart again from the name of an object.
 */
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity, PRODUCT_API } from "../../identity.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../ip/prefix.ts";
import {
  ALL_AFFINITIES_PREFIX,
  ALL_BORROWED_PREFIX,
  affinityKey,
  blockKey,
  blocksPrefix,
  borrowedKey,
  HANDLES_PREFIX,
  handleKey,
  IPAM_CONFIGURATION_KEY,
  parseKey,
} from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import { parseStored } from "../../model/stored.ts";
import type { ApiObject } from "./api.ts";
import type { CustomKind } from "./custom-objects.ts";
import type { ObjectRecord } from "./kind-mapping.ts";
import { blockObjectName, claimObjectName, labelValue, objectName } from "./object-names.ts";

const NODE_LABEL = `${identity.labelPrefix}node`;
/** On the claims of a node: whether the block is its own, or one that it borrows from. */
const CLAIM_LABEL = `${identity.labelPrefix}claim`;

type Fields = Readonly<Record<string, unknown>>;

export const IPAM_KINDS: readonly CustomKind[] = [
  blockKind(4),
  blockKind(6),
  claimKind("affinity"),
  claimKind("borrowed"),
  handleKind(),
  configurationKind(),
];

export function resourcePath(plural: string): string {
  return `/apis/${PRODUCT_API.group}/${PRODUCT_API.version}/${plural}`;
}

function blockKind(family: 4 | 6): CustomKind {
  return {
    // A handle is read no later than its blocks (src/ipam/handle.ts).
    traits: { needsProtection: true, order: "last" },
    prefix: blocksPrefix(family),
    apiVersion: API_VERSION,
    kind: "IPAMBlock",
    path: resourcePath("ipamblocks"),
    nameOf: (key) => {
      const parts = parseKey(key);
      return parts?.kind === "block" ? objectName(blockObjectName(formatPrefix(parts.cidr))) : undefined;
    },
    encode: (_, value) => ({ members: `"spec":${value}` }),
    decode: (object) => {
      const spec = specOf(object);
      const cidr = cidrOf(object, spec);
      return cidr.network.family === family ? { key: blockKey(cidr), value: JSON.stringify(spec) } : undefined;
    },
  };
}

/** What a node has of a block: the block itself, or only addresses in it. */
function claimKind(kind: "affinity" | "borrowed"): CustomKind {
  const [prefix, keyOf] =
    kind === "affinity" ? [ALL_AFFINITIES_PREFIX, affinityKey] : [ALL_BORROWED_PREFIX, borrowedKey];
  return {
    prefix,
    apiVersion: API_VERSION,
    kind: "BlockAffinity",
    path: resourcePath("blockaffinities"),
    nameOf: (key) => {
      const parts = parseKey(key);
      if (parts?.kind !== kind) return undefined;
      if (kind === "affinity") return objectName(claimObjectName(parts.node, parts.cidr));
      // A slash cannot be in a name, so this one always has a digest: a node may be called "x-borrowed".
      return objectName(`${parts.node}/borrowed/${blockObjectName(formatPrefix(parts.cidr))}`);
    },
    selectorOf: (below) => {
      const node = nodeIn(below, prefix);
      const terms = [`${CLAIM_LABEL}=${kind}`, ...(node === undefined ? [] : [`${NODE_LABEL}=${labelValue(node)}`])];
      return { labelSelector: terms.join(",") };
    },
    encode: (key, value) => {
      const { node, cidr } = requireParts(key, kind);
      const { state, deleted, ...others } = value === "" ? ({} as Fields) : fieldsOf(value, key);
      const spec = {
        ...others,
        state: kind === "borrowed" ? "borrowed" : (state ?? "confirmed"),
        node,
        cidr: formatPrefix(cidr),
        // Every writer of this kind stores a string.
        deleted: String(deleted === true || deleted === "true"),
      };
      return {
        labels: { [NODE_LABEL]: labelValue(node), [CLAIM_LABEL]: kind },
        members: `"spec":${JSON.stringify(spec)}`,
      };
    },
    decode: (object) => {
      const { node, cidr: _, state, deleted, ...others } = specOf(object);
      if (typeof node !== "string" || (state === "borrowed") !== (kind === "borrowed")) return undefined;
      const key = keyOf(node, cidrOf(object, specOf(object)));
      const stored = { ...others, ...(kind === "borrowed" ? {} : { state }), deleted: deleted === "true" };
      return { key, value: JSON.stringify(stored) };
    },
  };
}

function handleKind(): CustomKind {
  return {
    traits: { order: "first" },
    prefix: HANDLES_PREFIX,
    apiVersion: API_VERSION,
    kind: "IPAMHandle",
    path: resourcePath("ipamhandles"),
    nameOf: (key) => {
      const parts = parseKey(key);
      return parts?.kind === "handle" ? objectName(parts.handleId) : undefined;
    },
    // GC of a node looks at its own handles only, and neither their names nor their counts tell whose they are.
    selectorOf: (_, node) => (node === undefined ? undefined : { labelSelector: `${NODE_LABEL}=${labelValue(node)}` }),
    labelsOfNode: (node) => ({ [NODE_LABEL]: labelValue(node) }),
    encode: (key, value) => {
      const { handleId } = requireParts(key, "handle");
      return { members: `"spec":${JSON.stringify({ handleID: handleId, ...fieldsOf(value, key) })}` };
    },
    decode: (object) => {
      const { handleID, ...stored } = specOf(object);
      if (typeof handleID !== "string") throw malformed(object, '"spec.handleID" is not text');
      return { key: handleKey(handleID), value: JSON.stringify(stored) };
    },
  };
}

/** In the other stores its fields have other names. */
function configurationKind(): CustomKind {
  const name = "default";
  return {
    prefix: IPAM_CONFIGURATION_KEY,
    apiVersion: API_VERSION,
    kind: "IPAMConfiguration",
    path: resourcePath("ipamconfigurations"),
    nameOf: (key) => (key === IPAM_CONFIGURATION_KEY ? name : undefined),
    encode: (key, value) => {
      const { strict_affinity, auto_allocate_blocks, ...others } = fieldsOf(value, key);
      const spec = { ...others, strictAffinity: strict_affinity, autoAllocateBlocks: auto_allocate_blocks };
      return { members: `"spec":${JSON.stringify(spec)}` };
    },
    decode: (object): ObjectRecord | undefined => {
      if (object.metadata.name !== name) return undefined;
      const { strictAffinity, autoAllocateBlocks = true, ...others } = specOf(object);
      const stored = { ...others, strict_affinity: strictAffinity, auto_allocate_blocks: autoAllocateBlocks };
      return { key: IPAM_CONFIGURATION_KEY, value: JSON.stringify(stored) };
    },
  };
}

/** The node whose claims have this prefix; `undefined` if it is not that of one node. */
function nodeIn(below: string, prefix: string): string | undefined {
  const [node, ...rest] = below.slice(prefix.length).split("/");
  return rest.length === 0 ? undefined : node?.replaceAll("%2F", "/").replaceAll("%25", "%");
}

type Parts = NonNullable<ReturnType<typeof parseKey>>;

function requireParts<Kind extends Parts["kind"]>(key: string, kind: Kind): Extract<Parts, { readonly kind: Kind }> {
  const parts = parseKey(key);
  if (parts?.kind === kind) return parts as Extract<Parts, { readonly kind: Kind }>;
  throw new PluginError("internal", `Cannot store "${key}": it is not the key of a record of kind "${kind}"`);
}

function fieldsOf(value: string, key: string): Fields {
  const fields = parseStored(value, "a record", key);
  return isObject(fields) ? fields : {};
}

function specOf(object: ApiObject): Fields {
  const spec = object["spec"];
  if (!isObject(spec)) throw malformed(object, '"spec" is missing');
  return spec;
}

function cidrOf(object: ApiObject, { cidr }: Fields): Prefix {
  const prefix = typeof cidr === "string" ? parsePrefix(cidr) : undefined;
  if (prefix === undefined) throw malformed(object, '"spec.cidr" is not a CIDR');
  return prefix;
}

function malformed(object: ApiObject, state: string): PluginError {
  return new PluginError("record-malformed", `Cannot read ${object["kind"]} "${object.metadata.name}": ${state}`);
}
