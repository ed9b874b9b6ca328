/** How objects of the operator are marked. */
import { identity } from "../identity.ts";
import type { Resource } from "../model/resource.ts";

const LABEL = "app.kubernetes.io/managed-by";

/** The label of everything that the operator has created, IP pools included. */
export const MANAGED_BY = { [LABEL]: identity.operator } as const;

/** As `kubectl label` takes it. */
export const MANAGED_BY_TEXT = `${LABEL}=${identity.operator}`;

export function isManaged({ metadata }: Pick<Resource, "metadata">): boolean {
  return metadata.labels?.[LABEL] === identity.operator;
}

export function withManagedLabel<R extends Resource>(resource: R): R {
  const { metadata } = resource;
  return { ...resource, metadata: { ...metadata, labels: { ...metadata.labels, ...MANAGED_BY } } };
}
