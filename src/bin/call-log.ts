/** What a plugin without a session needs for its log. */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../config/installed-network-list.ts";
import { readText } from "../linux/files.ts";
import type { CallLogSurroundings } from "../log/call-log.ts";
import { parseJson } from "../parse-json.ts";
import type { CallContext } from "../plugin/call-context.ts";

export function callLogOf(component: string, { stderr, milliseconds }: CallContext): CallLogSurroundings {
  return { component, pid: process.pid, clock: () => new Date(), stderr, milliseconds, networkLogConfig };
}

/** A runtime passes to each plugin of a list its own entry only: the others are in the list's file. */
function networkLogConfig(network: string): JsonObject | undefined {
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  try {
    for (const name of readdirSync(NETWORK_CONFIG_DIRECTORY).sort()) {
      if (!name.endsWith(".conflist")) continue;
      const found = entryWithLogFile(readText(`${NETWORK_CONFIG_DIRECTORY}/${name}`) ?? "", network);
      if (found !== undefined) return found;
    }
  } catch {
    // Without the directory, lines go to stderr only.
  }
  return undefined;
}

function entryWithLogFile(text: string, network: string): JsonObject | undefined {
  // Most files are of other networks.
  if (!text.includes("log_file_path")) return undefined;
  const list = parsed(text);
  if (!isJsonObject(list) || list["name"] !== network || !Array.isArray(list["plugins"])) return undefined;
  return list["plugins"].filter(isJsonObject).find((entry) => typeof entry["log_file_path"] === "string");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
