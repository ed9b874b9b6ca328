/** The `spec` of `default` with that of `overlay` over it. Pure: works on what users write. */
import { isObject } from "../../model/shape.ts";

type Members = Readonly<Record<string, unknown>>;

/** Objects of which only one member may be set, or whose members are one decision: replaced as a whole. */
const WHOLE = new Set([
  "nodeAddressAutodetectionV4",
  "nodeAddressAutodetectionV6",
  "controlPlaneNodeSelector",
  "nodeSelector",
  "affinity",
  "resources",
  "resourceRequirements",
]);

/** Members that exclude each other: one of the overlay replaces the other of the base. */
const ALTERNATIVES: Readonly<Record<string, string>> = { endpoints: "discoverySrv", discoverySrv: "endpoints" };

/** Members of objects are merged; lists and single values of the overlay replace those of the base. */
export function mergeOverlay(base: Members, overlay: Members): Members {
  const replaced = Object.entries(overlay).flatMap(([name, value]) => (isEmptyList(value) ? [] : ALTERNATIVES[name]));
  const merged = Object.fromEntries(Object.entries(base).filter(([name]) => !replaced.includes(name)));
  for (const [name, value] of Object.entries(overlay)) {
    const below = merged[name];
    const isMerged = isObject(value) && isObject(below) && !WHOLE.has(name);
    merged[name] = isMerged ? mergeOverlay(below, value) : value;
  }
  return merged;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/**
 * What to write back into `default`: the values of `complete` that neither `base` nor `overlay` sets. A list of
 * objects of the base (its pools) is replaced by the complete one, unless the overlay has its own.
 */
export function withAbsentFields(base: Members, complete: Members, overlay: Members): Members {
  const written: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(complete)) {
    const [own, over] = [base[name], overlay[name]];
    if (isObject(value) && !WHOLE.has(name)) {
      const inner = withAbsentFields(isObject(own) ? own : {}, value, isObject(over) ? over : {});
      if (own !== undefined || Object.keys(inner).length > 0) written[name] = inner;
    } else if (over === undefined && (own === undefined || isListOfObjects(own))) written[name] = value;
  }
  return written;
}

function isListOfObjects(value: unknown): boolean {
  return Array.isArray(value) && value.some(isObject);
}
