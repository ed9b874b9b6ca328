import { LONGEST_NAME } from "./longest-name.ts";

/** Names are parts of keys: a slash would divide one in two, and not every piece of JSON text can be written down. */
export function isNodeName(name: string): boolean {
  return name.length <= LONGEST_NAME && name.isWellFormed() && !name.includes("/") && !name.includes("\0");
}
