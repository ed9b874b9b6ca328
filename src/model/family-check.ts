import { type Family, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { Problem } from "./problem.ts";

/** Refuses an address of the other family. Text that is not an address is reported by the field itself. */
export function checkFamily(text: string | undefined, family: Family, path: string): readonly Problem[] {
  if (text === undefined) return [];
  const address = parseInterfaceAddress(text)?.address ?? parseAddress(text);
  if (!address || address.family === family) return [];
  return [{ path, value: text, message: `is an IPv${address.family} address; use an IPv${family} address` }];
}
