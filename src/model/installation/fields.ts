/** Schemas of values in several parts of an Installation. */
import * as v from "valibot";
import { nameMap } from "../name-map.ts";

export const switchField = v.picklist(["Enabled", "Disabled"]);

/**
 * A field that other products know, with the only values that this one carries out. A pattern, not a list of values:
 * it has a message that gives the reason.
 */
export function onlyValues(values: readonly string[], message: string) {
  return v.pipe(v.string(), v.regex(new RegExp(`^(${values.join("|")})$`), message));
}

export function wholeNumber(message: string, minimum: number, maximum: number) {
  return v.pipe(v.number(), v.integer(message), v.minValue(minimum, message), v.maxValue(maximum, message));
}

export const portField = wholeNumber("is not a port; use a whole number from 1 to 65535", 1, 65_535);

/** Of the orchestrator's own types, which its API server checks when the object is applied. */
export const anyObjectField = v.looseObject({});

/** Text of a field that is refused whatever it says. */
export const anyText = v.string();

/** 1, "500m", "64Mi". */
export const quantityField = v.union([v.string(), v.number()]);
const quantities = nameMap(quantityField);

export const resourcesField = v.object({
  limits: v.exactOptional(quantities),
  requests: v.exactOptional(quantities),
});

export const tolerationField = v.object({
  key: v.exactOptional(v.string()),
  operator: v.exactOptional(v.picklist(["Exists", "Equal"])),
  value: v.exactOptional(v.string()),
  effect: v.exactOptional(v.picklist(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
  tolerationSeconds: v.exactOptional(v.number()),
});

export const nodeSelectorField = nameMap(v.string());
