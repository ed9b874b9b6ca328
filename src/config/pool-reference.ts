/** An entry of a pool list: the CIDR of a pool, or a pool's name. */
import type { Family } from "../ip/address.ts";
import { parsePrefix } from "../ip/prefix.ts";

/** Whether the text can refer to a pool of this family; whether the pool exists is checked in the datastore. */
export function isPoolReference(text: string, family: Family): boolean {
  if (text.includes("/") || text.includes(":")) return parsePrefix(text)?.network.family === family;
  return text.length <= 253 && POOL_NAME.test(text) && !LOOKS_LIKE_ADDRESS.test(text);
}

const POOL_NAME = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;
const LOOKS_LIKE_ADDRESS = /^[\d.]+$/;
