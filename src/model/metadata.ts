/**
 * What every resource bears: its name, labels and the rest of `metadata`.
 */
import * as v from "valibot";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_NAME = 253;

/** Whether the text is an RFC 1123 subdomain, as names of resources must be. */
export function isResourceName(text: string): boolean {
  return text.length <= LONGEST_NAME && SUBDOMAIN.test(text);
}

const textMap = v.record(v.string(), v.string());

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
  ownerReferences: v.exactOptional(v.array(v.record(v.string(), v.unknown()))),
  deletionTimestamp: v.exactOptional(v.string()),
  deletionGracePeriodSeconds: v.exactOptional(v.number()),
  managedFields: v.exactOptional(v.array(v.unknown())),
  selfLink: v.exactOptional(v.string()),
});

export type Metadata = Readonly<v.InferOutput<typeof metadataSchema>>;
