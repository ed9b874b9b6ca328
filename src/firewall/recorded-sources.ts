import type { Prefix } from "../ip/prefix.ts";

/** Sources that a pod may use beside its own addresses, as its endpoint records them. */
export interface RecordedSources {
  /** The alias of the host's link. */
  readonly mark: string;
  readonly prefixes: readonly Prefix[];
}
