/**
 * Moves an agent that was started in a container to the host: the program starts again in the host's namespaces, in
 * the same process. There the agent sees the config, the links and the datastore as the plugins do.
 */
import { identity } from "../identity.ts";
import { joinNamespaces } from "../linux/namespaces.ts";
import { OWN_PROGRAM, replaceProcess } from "../linux/own-process.ts";

/** Returns only if it fails: the reason. */
export function enterHost(namespaces: string): string {
  try {
    joinNamespaces(namespaces);
    return replaceProcess(OWN_PROGRAM, [identity.nodeAgent], process.env);
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}
