/** Rule 1: a network config with several plugins needs at least CNI 0.3.0. Pure; the text keeps its layout and its placeholders. */
import { parseNetworkList, pluginsOf } from "../../live-network-configs.ts";

/** What every runtime and every chained plugin knows that knows lists at all. */
export const LIST_VERSION = "0.3.1";

export type ListState =
  | { readonly kind: "fine" }
  | { readonly kind: "too old"; readonly version: string; readonly raised: string }
  | { readonly kind: "unreadable" };

export function listState(text: string): ListState {
  const list = parseNetworkList(text);
  if (list === undefined) return { kind: "unreadable" };
  const version = list["cniVersion"] ?? "";
  if (pluginsOf(list).length < 2 || !isBelowLists(String(version))) return { kind: "fine" };
  const raised = raisedText(text);
  return raised === undefined ? { kind: "unreadable" } : { kind: "too old", version: String(version), raised };
}

/** Without a version it is 0.1.0. */
function isBelowLists(version: string): boolean {
  if (version === "") return true;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 0 && minor < 3;
}

/** Tries every place, since delegated plugins may have a version of their own. */
function raisedText(text: string): string | undefined {
  const candidates = [
    ...[...text.matchAll(/"cniVersion"\s*:\s*"[^"]*"/g)].map(({ 0: found, index }) =>
      replaced(text, index, found.length, found.replace(/"[^"]*"$/, `"${LIST_VERSION}"`)),
    ),
    text.replace("{", `{\n  "cniVersion": "${LIST_VERSION}",`),
  ];
  return candidates.find((candidate) => parseNetworkList(candidate)?.["cniVersion"] === LIST_VERSION);
}

function replaced(text: string, index: number, length: number, by: string): string {
  return `${text.slice(0, index)}${by}${text.slice(index + length)}`;
}
