/** How a user can repair an unreadable IPAM record (docs/ipam.md has more). */
import { identity } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { parseKey } from "../../model/keys.ts";

export function ipamRecordRemedy(key: string): string {
  const parts = parseKey(key);
  switch (parts?.kind) {
    case "block":
      return `correct it in the datastore; remove it there only if nothing uses an address of ${formatPrefix(parts.cidr)}`;
    case "handle":
    case "affinity":
      return `correct it in the datastore, or remove it there: "${identity.adminTool} ipam check --fix" writes it again if it is needed`;
    default:
      return "correct it in the datastore, or remove it there if it is not needed";
  }
}
