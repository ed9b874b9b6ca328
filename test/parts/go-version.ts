/** Whether a Go can build a module. Pure. */

/** `installed`: what `go version` prints. */
export function isNewEnough(installed: string, goMod: string): boolean {
  const found = /\bgo(\d+(?:\.\d+)*)/.exec(installed)?.[1] ?? "0";
  return Bun.semver.order(fullVersion(found), fullVersion(neededGo(goMod))) >= 0;
}

function neededGo(goMod: string): string {
  return /^go (\S+)$/m.exec(goMod)?.[1] ?? "0";
}

function fullVersion(version: string): string {
  return [...version.split("."), "0", "0"].slice(0, 3).join(".");
}
