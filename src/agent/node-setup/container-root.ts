/** The root directory of the container that this process was started in, if it has entered the host (enter-host.ts). */
import { readlinkSync } from "node:fs";
import type { Environment } from "../../cni/environment.ts";
import { identity } from "../../identity.ts";
import { pathWithinRoot } from "../../linux/path-within-root.ts";

/** `/proc/self/fd/N`: an open directory of this process. */
export const CONTAINER_ROOT = `${identity.environmentPrefix}CONTAINER_ROOT`;

/** Where a file of the container is, also for other processes of this host; `undefined` outside a container. */
export function pathInContainer(environment: Environment, path: string): string | undefined {
  const root = environment[CONTAINER_ROOT];
  if (!root) return undefined;
  // Children do not inherit the directory.
  const ownRoot = root.replace(/^\/proc\/self\//, () => `/proc/${readlinkSync("/proc/self")}/`);
  return pathWithinRoot(ownRoot, path);
}
