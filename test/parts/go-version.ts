/** Whether a Go can build a module. Pure. */

/**
 * The reason why not, or undefined if it can.
 * `version`: what `go version` prints; undefined if there is no Go.
 */
export function goVersionProblem(goMod: string, version: string | undefined): string | undefined {
  const needed = /^go (\S+)$/m.exec(goMod)?.[1] ?? "0";
  if (version === undefined) return `needs Go ${needed} or newer to be built`;
  const found = /\bgo(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? "0";
  if (Bun.semver.order(fullVersion(found), fullVersion(needed)) >= 0) return undefined;
  return `needs Go ${needed} or newer to be built, and Go ${found} is installed`;
}

function fullVersion(version: string): string {
  return [...version.split("."), "0", "0"].slice(0, 3).join(".");
}
