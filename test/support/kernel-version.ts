/** Whether the running kernel is at least as new as `version` (`6.3`): some replies and requests are newer than what the product needs. */
import { release } from "node:os";

export function isKernelAtLeast(version: string): boolean {
  const [major = 0, minor = 0] = release().split(/[.-]/).map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = version.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
