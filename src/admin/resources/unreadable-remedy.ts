/**
 * How a user can repair an unreadable record. A resource is deleted by name and
 * created again; a record without a name must be corrected with the datastore's
 * own tool (docs/ipam.md says how).
 */

import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { parseKey, type ResourceName } from "../../model/keys.ts";
import { findKind } from "../../model/kinds.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { ipamRecordRemedy } from "./ipam-record-remedy.ts";
import { referenceText } from "./reference.ts";

/** Reads a record; if it is unreadable, the error says how to repair it. */
export function readOrExplain<Record>(entry: Entry, read: (entry: Entry) => Record): Record {
  try {
    return read(entry);
  } catch (failure) {
    throw explained(entry.key, failure);
  }
}

/** The failure of work that reads the record at the key: if it is unreadable, it says how to repair it. */
export function explained(key: string, failure: unknown): unknown {
  return failure instanceof PluginError && failure.kind === "record-malformed" ? withRemedy(key, failure) : failure;
}

/** The failure to read the record at the key, with its remedy. */
export function withRemedy(key: string, failure: PluginError): PluginError {
  return new PluginError(failure.kind, failure.message, { details: remedyFor(key), cause: failure });
}

export function remedyFor(key: string): string {
  return namedResourceRemedy(key) ?? ipamRecordRemedy(key);
}

/** `undefined` if the key is not that of a public kind, so that `delete` cannot name it. */
function namedResourceRemedy(key: string): string | undefined {
  const found = resourceAt(key);
  if (!found) return undefined;
  const { kind, name } = found;
  const remove = `delete it with "${identity.adminTool} delete ${referenceText(kind, name)} --force"`;
  return kind.remedyIfUnreadable?.(remove) ?? `${remove}, then apply it again`;
}

/** The resource of a public kind that is stored at the key. */
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
