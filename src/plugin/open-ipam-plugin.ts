/**
 * Finds an IPAM plugin that is not our allocator: `host-local` or any other. It
 * runs by the rules of CNI, as a process of its own; our own `host-local` in
 * this process, which saves the start of another.
 */
import type { CniCall } from "../cni/call.ts";
import { type DelegateRequest, delegateAdd, findPlugin, runDelegate } from "../cni/delegate.ts";
import { isSameFile } from "../linux/files.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";

const HOST_LOCAL = "host-local";

/** Shorter than the two minutes that a kubelet waits. */
const LIMIT_MILLISECONDS = 60_000;

/** Finds the plugin in CNI_PATH and nowhere else. `executable` is the file this process runs. */
export async function openIpamPlugin(type: string, call: CniCall, executable: string): Promise<IpamPlugin> {
  const path = await findPlugin(type, call.environment);
  if (type === HOST_LOCAL && isSameFile(path, executable)) {
    const { hostLocalInProcess } = await import("./host-local-in-process.ts");
    return hostLocalInProcess;
  }
  return pluginByProcess(type);
}

function pluginByProcess(type: string): IpamPlugin {
  const run = async (call: CniCall, command: CniCall["command"], signal: AbortSignal) => {
    await runDelegate(requestOf(type, call, command, signal));
  };
  return {
    add: (call, signal) => delegateAdd(requestOf(type, call, "ADD", signal), call.cniVersion),
    del: (call, signal) => run(call, "DEL", signal),
    check: (call, signal) => run(call, "CHECK", signal),
    gc: (call, signal) => run(call, "GC", signal),
    status: (call, signal) => run(call, "STATUS", signal),
  };
}

function requestOf(type: string, call: CniCall, command: CniCall["command"], signal: AbortSignal): DelegateRequest {
  const { environment, stdin } = call;
  return { type, command, environment, stdin, limitMilliseconds: LIMIT_MILLISECONDS, signal };
}
