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

/** `vendor.org/v3`: the API version of pools, policies, endpoints … */
export const API_VERSION = `${names.apiGroup}/v3`;

/** `operator.vendor.io/v1`: the API version of the `Installation` resource. */
export const OPERATOR_API_VERSION = `${names.operatorApiGroup}/v1`;

/**
 * What the orchestrator is called inside identifiers: the neutral word of the
 * specification first, then the name real clusters use. Both are accepted.
 */
export const ORCHESTRATOR_NAMES = ["orchestrator", "kubernetes"] as const;
