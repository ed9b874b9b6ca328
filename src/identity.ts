/**
 * Every name the product bears.
 *
 * The names live in `identity/vendor.json`; the build may put another file in
 * its place (`make build IDENTITY=other.json`), which is how the product is
 * rebuilt under another name. No other source file spells a product name.
 */
import names from "../identity/vendor.json";

export type Identity = Readonly<typeof names>;

export const identity: Identity = names;

/** An API group and the version of it that is served. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** `vendor.org/v3`: the API of pools, policies, endpoints … */
export const PRODUCT_API: GroupVersion = { group: names.apiGroup, version: "v3" };

/** Where releases up to v3.28 stored their resources, behind an aggregated API. */
export const FORMER_API: GroupVersion = { group: `crd.${names.apiGroup}`, version: "v1" };

/** `flows.vendor.org/v1`: flows of the whole cluster, an API that the controllers serve behind the API server. */
export const FLOWS_API: GroupVersion = { group: `flows.${names.apiGroup}`, version: "v1" };

/** The container that decided about requests in pods of a mesh, up to v3.28. */
export const FORMER_SIDECAR = "dikastes";

/** `operator.vendor.io/v1`: the API of the `Installation` resource. */
export const OPERATOR_API: GroupVersion = { group: names.operatorApiGroup, version: "v1" };

/** As `apiVersion` of a resource spells it: `vendor.org/v3`. */
export function apiVersionOf({ group, version }: GroupVersion): string {
  return `${group}/${version}`;
}

/** Of the kinds that the product stores itself. A codec knows the one of its own kind. */
export const API_VERSION = apiVersionOf(PRODUCT_API);

/**
 * What the orchestrator is called inside identifiers: the neutral word of the
 * specification first, then the name real clusters use. Both are accepted.
 */
export const ORCHESTRATOR_NAMES = ["orchestrator", "kubernetes"] as const;
