/**
 * Moves an agent that was started in a container to the host: the program starts again in the host's namespaces, in
 * the same process. There the agent sees the config, the links and the datastore as the plugins do; what it needs of
 * the container, such as the account of its pod, it finds below the container's root (container-root.ts).
 */
import type { Environment } from "../../cni/environment.ts";
import { identity } from "../../identity.ts";
import { joinNamespaces, keepRoot } from "../../linux/namespaces.ts";
import { OWN_PROGRAM, replaceProcess } from "../../linux/own-process.ts";
import { CONTAINER_ROOT } from "./container-root.ts";

/** `args`: of the program that starts again, in this environment. Returns only if it fails: the reason. */
export function enterHost(environment: Environment, namespaces: string, args: readonly string[] = []): string {
  try {
    const root = keepRoot();
    joinNamespaces(namespaces);
    return replaceProcess(OWN_PROGRAM, [identity.nodeAgent, ...args], { ...environment, [CONTAINER_ROOT]: root });
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}
