/** The versions of the CNI specification. */

/** Ascending. */
export const CNI_VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;

export type CniVersion = (typeof CNI_VERSIONS)[number];

export const NEWEST_VERSION: CniVersion = "1.1.0";

/** The version of a config without `cniVersion`. */
export const VERSION_WHEN_ABSENT: CniVersion = "0.1.0";

/** The first version with lists of plugins and `prevResult`. */
export const FIRST_CHAINING_VERSION: CniVersion = "0.3.0";

/** The versions in which a plugin can be part of a list; ascending. */
export const CHAINING_VERSIONS: readonly CniVersion[] = CNI_VERSIONS.slice(
  CNI_VERSIONS.indexOf(FIRST_CHAINING_VERSION),
);

/** Exact spelling only: "0.4" is not a version. */
export function isCniVersion(text: unknown): text is CniVersion {
  return CNI_VERSIONS.some((version) => version === text);
}

export function isAtLeast(version: CniVersion, minimum: CniVersion): boolean {
  return CNI_VERSIONS.indexOf(version) >= CNI_VERSIONS.indexOf(minimum);
}

/** The versions of one family have the same result shape; only the version string differs. */
export type ShapeFamily = "ip4-ip6" | "versioned-ips" | "plain-ips";

export function shapeFamilyOf(version: CniVersion): ShapeFamily {
  if (!isAtLeast(version, "0.3.0")) return "ip4-ip6";
  return isAtLeast(version, "1.0.0") ? "plain-ips" : "versioned-ips";
}
