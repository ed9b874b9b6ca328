/** Releases by their version: `v1.10.0` is later than `v1.9.3`, and than `v1.10.0-rc.1`. Pure. */
const RELEASE = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

export function isRelease(version: string): boolean {
  return RELEASE.test(version);
}

/** Negative if the left one is earlier. Both must be releases. */
export function compareReleases(left: string, right: string): number {
  const [one, other] = [partsOf(left), partsOf(right)];
  for (const [index, number] of one.numbers.entries()) {
    const difference = number - (other.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return compareStages(one.stage, other.stage);
}

/** Without a stage it is the release itself, which comes after its candidates. */
function compareStages(left: string, right: string): number {
  if (left === right) return 0;
  if (left === "" || right === "") return left === "" ? 1 : -1;
  return left.localeCompare(right, "en", { numeric: true });
}

function partsOf(version: string): { readonly numbers: readonly number[]; readonly stage: string } {
  const [, major = "0", minor = "0", patch = "0", stage = ""] = RELEASE.exec(version) ?? [];
  return { numbers: [major, minor, patch].map(Number), stage };
}
