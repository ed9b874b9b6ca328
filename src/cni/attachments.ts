/** The attachments that GC must keep. */
import { PluginError } from "../errors.ts";
import { isJsonObject, type JsonObject } from "./json.ts";

export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

/** The key of the specification, then the misspelt one that some older libraries send instead. */
const KEYS = ["cni.dev/valid-attachments", "cni.dev/attachments"] as const;

/**
 * An empty list means that no attachment is left. Without a list (or with `null`)
 * nothing is known, and GC must remove nothing: the two must not be confused.
 */
export function decodeValidAttachments(config: JsonObject): readonly Attachment[] | undefined {
  const key = KEYS.find((one) => config[one] !== undefined && config[one] !== null);
  if (key === undefined) return undefined;

  const list = config[key];
  if (!Array.isArray(list)) throw malformed(key, "it is not a list");
  return list.map((item: unknown, index) => decodeAttachment(item, `${key}[${index}]`));
}

export function encodeValidAttachments(attachments: readonly Attachment[]): JsonObject {
  const list = attachments.map(({ containerId, ifname }) => ({ containerID: containerId, ifname }));
  return Object.fromEntries(KEYS.map((key) => [key, list]));
}

function decodeAttachment(item: unknown, place: string): Attachment {
  if (!isJsonObject(item)) throw malformed(place, "it is not an object");
  const { containerID: containerId, ifname } = item;
  if (typeof containerId !== "string" || containerId === "") throw malformed(place, '"containerID" is not a string');
  if (typeof ifname !== "string" || ifname === "") throw malformed(place, '"ifname" is not a string');
  return { containerId, ifname };
}

function malformed(place: string, state: string): PluginError {
  return new PluginError("decode-failure", `Cannot read ${place}: ${state}`);
}
