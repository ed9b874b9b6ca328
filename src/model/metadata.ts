/**
 * What every resource bears: its name, labels and the rest of `metadata`.
 */
import * as v from "valibot";
import { nameMap } from "./name-map.ts";
import type { Problem } from "./problem.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_NAME = 253;

/** Whether the text is an RFC 1123 subdomain, as names of resources must be. */
export function isResourceName(text: string): boolean {
  return text.length <= LONGEST_NAME && SUBDOMAIN.test(text);
}

/** As selectors spell them. */
const LABEL = /^[A-Za-z0-9_./-]{1,512}$/;

/** Labels that no selector could ever name, and values that no name is as long as, are a mistake of who wrote them. */
export function checkLabels(labels: Readonly<Record<string, string>>, path: string): readonly Problem[] {
  return Object.entries(labels).flatMap(([label, value]): Problem[] => {
    if (!LABEL.test(label)) {
      return [{ path, value: label, message: 'is no label; use 1 to 512 letters, digits, "_", ".", "/" or "-"' }];
    }
    if (value.length <= LONGEST_NAME) return [];
    const message = `is too long, ${value.length} characters; use at most ${LONGEST_NAME}, or an annotation`;
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
  /** Given by the datastore on every read; never stored. */
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
