/**
 * How a user gets rid of a record that cannot be read. What has a name is
 * removed by it, unread, and made again; what has none is a matter of the
 * datastore's own tool (docs/ipam.md says how).
 */
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { parseKey, type ResourceName } from "../../model/keys.ts";
import { findKind, type PublicKind } from "../../model/kinds.ts";
import { referenceText } from "./reference.ts";

/** Reads a record; the failure of one that cannot be read says how to get rid of it. */
export function readOrExplain<Record>(entry: Entry, read: (entry: Entry) => Record): Record {
  try {
    return read(entry);
  } catch (failure) {
    if (!(failure instanceof PluginError) || failure.kind !== "record-malformed") throw failure;
    throw withWayOut(entry.key, failure);
  }
}

/** The failure to read what lies at the key, and the way out of it. */
export function withWayOut(key: string, failure: PluginError): PluginError {
  return new PluginError(failure.kind, failure.message, { details: wayOut(key), cause: failure });
}

export function wayOut(key: string): string {
  const parts = parseKey(key);
  switch (parts?.kind) {
    case "block":
      return `correct it in the datastore; remove it there only if nothing uses an address of ${formatPrefix(parts.cidr)}`;
    case "handle":
    case "affinity":
      return `correct it in the datastore, or remove it there: "${identity.adminTool} ipam check --fix" writes it anew if it is needed`;
    default:
      return wayOutByName(key) ?? "correct it in the datastore, or remove it there if it is not needed";
  }
}

/** `undefined` for what no public kind has under this key, and `delete` therefore cannot name. */
function wayOutByName(key: string): string | undefined {
  const found = resourceAt(key);
  if (!found) return undefined;
  const { kind, name } = found;
  const remove = `remove it with "${identity.adminTool} delete ${referenceText(kind, name)} --force"`;
  switch (kind.kind) {
    case "IPPool":
      return `whether its addresses are in use cannot be told; ${remove}, then apply it again with the same range`;
    case "ClusterInformation":
      return `${remove}, then make the datastore ready with "${identity.adminTool} datastore init"`;
    case "WorkloadEndpoint":
      return `${remove}, then recreate its workload`;
    default:
      return `${remove}, then apply it again`;
  }
}

function resourceAt(key: string): { readonly kind: PublicKind; readonly name: ResourceName } | undefined {
  const parts = parseKey(key);
  if (parts?.kind === "ipam-configuration") return named("ipamconfigurations", { name: "default" }, key);
  return parts?.kind === "resource" ? named(parts.plural, parts, key) : undefined;
}

function named(plural: string, { name, namespace }: ResourceName, key: string) {
  const kind = findKind(plural);
  const own = kind?.namespaced ? { name, namespace } : { name };
  return kind?.key(own) === key ? { kind, name: own } : undefined;
}
