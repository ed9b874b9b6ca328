/** How a user gets rid of a record that cannot be read: it is removed by its name, unread, and made again. */
import { identity } from "../../identity.ts";
import { parseKey, type ResourceName } from "../../model/keys.ts";
import { findKind, type PublicKind } from "../../model/kinds.ts";
import { referenceText } from "./reference.ts";

/** `undefined` for what no public kind has under this key, and `delete` therefore cannot name. */
export function wayOut(key: string): string | undefined {
  const found = resourceAt(key);
  if (!found) return undefined;
  const { kind, name } = found;
  const remove = `remove it with "${identity.adminTool} delete ${referenceText(kind, name)} --force"`;
  switch (kind.kind) {
    case "IPPool":
      return `whether its addresses are in use cannot be told; ${remove}, then apply it again with the same range`;
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
