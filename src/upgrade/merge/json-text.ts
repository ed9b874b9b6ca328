/**
 * JSON inside the text of a ConfigMap, such as a network config list. Earlier releases have placeholders without quotes in
 * it (`"mtu": __CNI_MTU__`), which the installation of a node replaced. Pure.
 */
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

const STRING_OR_PLACEHOLDER = /"(?:[^"\\]|\\.)*"|__[A-Za-z0-9_]+__/g;
/** Not in any real text, so that a placeholder without quotes can be told from one with quotes. */
const BARE = "\u{F0000}";
const PRINTED_BARE = new RegExp(`"${BARE}(__[A-Za-z0-9_]+__)"`, "g");

/** `undefined` if the text is not an object or a list. */
export function parseJsonText(text: unknown): object | undefined {
  if (typeof text !== "string" || !/^\s*[[{]/.test(text)) return undefined;
  const quoted = text.replace(STRING_OR_PLACEHOLDER, (part) =>
    part.startsWith('"') ? part : JSON.stringify(`${BARE}${part}`),
  );
  try {
    const value = parseJson(quoted);
    return isObject(value) || Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function printJsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`.replace(PRINTED_BARE, "$1");
}
