/**
 * Finds an IPAM plugin other than our allocator: `host-local` or any other. It is
 * executed as CNI specifies; our own `host-local` runs in this process, which
 * saves starting another one.
 */
import type { CniCall } from "../cni/call.ts";
import { type DelegateRequest, delegateAdd, findPlugin, runDelegate } from "../cni/delegate.ts";
import { loadOnce } from "../load-once.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";
import type { Surroundings } from "./session.ts";

export const HOST_LOCAL = "host-local";

/** Shorter than the two minutes that a kubelet waits. */
const LIMIT_MILLISECONDS = 60_000;

const loadHostLocal = loadOnce(() => import("./host-local-in-process.ts"));

/** Searches only CNI_PATH. */
export async function openIpamPlugin(type: string, call: CniCall, surroundings: Surroundings): Promise<IpamPlugin> {
  const { place } = findPlugin(type, call.environment);
  if (type === HOST_LOCAL && place === surroundings.executablePlace()) {
    const { hostLocalInProcess } = await loadHostLocal();
    return hostLocalInProcess;
  }
  return pluginByProcess(type, surroundings);
}

function pluginByProcess(type: string, { delegateStderr: stderr }: Surroundings): IpamPlugin {
  const requestOf = (call: CniCall, command: CniCall["command"], signal: AbortSignal): DelegateRequest => ({
    type,
    command,
    environment: call.environment,
    stdin: call.stdin,
    limitMilliseconds: LIMIT_MILLISECONDS,
    stderr,
    signal,
  });
  const run = async (call: CniCall, command: CniCall["command"], signal: AbortSignal) => {
    await runDelegate(requestOf(call, command, signal));
  };
  return {
    add: (call, signal) => delegateAdd(requestOf(call, "ADD", signal), call.cniVersion),
    del: (call, signal) => run(call, "DEL", signal),
    check: (call, signal) => run(call, "CHECK", signal),
    gc: (call, signal) => run(call, "GC", signal),
    status: (call, signal) => run(call, "STATUS", signal),
  };
}
