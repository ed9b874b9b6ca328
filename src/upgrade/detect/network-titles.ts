/** The manifests of the spec's rules 7 and 8, as they are named to users. */
import type { ManifestNetwork } from "../engine/facts.ts";

export const NETWORK_TITLES: Readonly<Record<ManifestNetwork, string>> = {
  own: "networking and policy",
  other: "policy with another networking plugin",
  fabric: "policy only, advanced",
};
