/** The config as the product uses it, in the form of a config file: with all defaults, without secrets. */
import type { JsonObject } from "../cni/json.ts";
import { isJsonObject } from "../cni/json.ts";
import { identity } from "../identity.ts";
import { decodeEntries, findKey } from "./field.ts";
import { redactAll } from "./redact.ts";
import { networkConfigFields } from "./schema.ts";

/** Only for a valid config: an invalid value would be shown as absent. */
export function effectiveConfig(raw: JsonObject): JsonObject {
  const findings = { problems: [], unknownKeys: [], present: new Map<string, unknown>() };
  const decoded = decodeEntries(networkConfigFields(), raw, { path: [], findings });
  const given = raw[findKey(raw, "ipam") ?? "ipam"];
  const ipam = decoded.ipam.type === identity.ipamType || !isJsonObject(given) ? decoded.ipam : given;
  return redactAll({ ...decoded, ipam }) as JsonObject;
}
