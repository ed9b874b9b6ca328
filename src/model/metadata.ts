/**
 * The `metadata` of every resource: name, labels and other fields.
 */
import * as v from "valibot";
import { isLabelName, isLabelValue } from "./label-name.ts";
import { LONGEST_NAME } from "./longest-name.ts";
import { nameMap } from "./name-map.ts";
import type { Problem } from "./problem.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Whether the text is an RFC 1123 subdomain, as resource names must be. */
export function isResourceName(text: string): boolean {
  return text.length <= LONGEST_NAME && SUBDOMAIN.test(text);
}

/** Refuses labels that no selector can name, and values longer than any name. */
export function checkLabels(labels: Readonly<Record<string, string>>, path: string): readonly Problem[] {
  return Object.entries(labels).flatMap(([label, value]): Problem[] => {
    if (!isLabelName(label)) {
      return [
        { path, value: label, message: 'is not a valid label; use 1 to 512 letters, digits, "_", ".", "/" or "-"' },
      ];
    }
    if (isLabelValue(value)) return [];
    const message = `is too long (${value.length} characters); use at most ${LONGEST_NAME}, or an annotation`;
    return [{ path: `${path}.${label}`, value, message }];
  });
}

const textMap = nameMap(v.string());

export const metadataSchema = v.object({
  name: v.string(),
  namespace: v.exactOptional(v.string()),
  uid: v.exactOptional(v.string()),
  creationTimestamp: v.exactOptional(v.string()),
  labels: v.exactOptional(textMap),
  annotations: v.exactOptional(textMap),
  generateName: v.exactOptional(v.string()),
  /** Set from the datastore's revision on every read; never stored. */
  resourceVersion: v.exactOptional(v.string()),
  generation: v.exactOptional(v.number()),
  finalizers: v.exactOptional(v.array(v.string())),
  ownerReferences: v.exactOptional(v.array(nameMap(v.unknown()))),
  deletionTimestamp: v.exactOptional(v.string()),
  deletionGracePeriodSeconds: v.exactOptional(v.number()),
  managedFields: v.exactOptional(v.array(v.unknown())),
  selfLink: v.exactOptional(v.string()),
});

export type Metadata = Readonly<v.InferOutput<typeof metadataSchema>>;
