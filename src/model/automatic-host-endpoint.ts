/** How automatic host endpoints are named and marked. Pure. */
import { identity } from "../identity.ts";
import type { HostEndpoint } from "./host-endpoint.ts";

const SUFFIX = "-auto-hep";

/** The component that created a host endpoint; absent from those of users. */
export const CREATED_BY_LABEL = `${identity.labelPrefix}created-by`;

/** The second is the controllers' name in releases up to v3.28: an upgrade must not leave endpoints that nobody keeps. */
const CREATORS: readonly unknown[] = [identity.controllers, `${identity.product}-kube-controllers`];

/** By its label, not by its name: a user may choose any name. */
export function isAutomatic({ metadata }: Pick<HostEndpoint, "metadata">): boolean {
  return CREATORS.includes(metadata.labels?.[CREATED_BY_LABEL]);
}

export function automaticName(node: string): string {
  return `${node}${SUFFIX}`;
}

/** `undefined` if it is not the name of an automatic host endpoint. */
export function nodeOfAutomaticName(name: string): string | undefined {
  return name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : undefined;
}
