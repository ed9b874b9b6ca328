/**
 * How a user gets rid of a record that cannot be read. What has a name is
 * removed by it, unread, and made again; what has none is a matter of the
 * datastore's own tool (docs/ipam.md says how).
 */
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { parseKey, type ResourceName } from "../../model/keys.ts";
import { findKind } from "../../model/kinds.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { wayOutOfRecord } from "./record-way-out.ts";
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
  return wayOutByName(key) ?? wayOutOfRecord(key);
}

/** `undefined` for what no public kind has under this key, and `delete` therefore cannot name. */
function wayOutByName(key: string): string | undefined {
  const found = resourceAt(key);
  if (!found) return undefined;
  const { kind, name } = found;
  const remove = `remove it with "${identity.adminTool} delete ${referenceText(kind, name)} --force"`;
  return kind.remedyOfUnreadable?.(remove) ?? `${remove}, then apply it again`;
}

/** The resource of a public kind that lies at the key. */
export function resourceAt(key: string): { readonly kind: AdminKind; readonly name: ResourceName } | undefined {
  const parts = parseKey(key);
  if (parts?.kind === "ipam-configuration") return named("ipamconfigurations", { name: "default" }, key);
  return parts?.kind === "resource" ? named(parts.plural, parts, key) : undefined;
}

function named(plural: string, { name, namespace }: ResourceName, key: string) {
  const kind = findKind(ADMIN_KINDS, plural);
  const own = kind?.namespaced ? { name, namespace } : { name };
  return kind?.key(own) === key ? { kind, name: own } : undefined;
}
