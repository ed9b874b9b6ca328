/** Our own `host-local` without a process of its own. A second ADD of an attachment gets its addresses again. */
import { hostLocalAdd, hostLocalCheck } from "../ipam/hostlocal/add.ts";
import { decodeSharedConfig } from "../ipam/hostlocal/config.ts";
import { hostLocalDel, hostLocalGc } from "../ipam/hostlocal/release.ts";
import { hostLocalStatus } from "../ipam/hostlocal/status.ts";
import type { IpamHost } from "../ipam/ipam-host.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";

export function hostLocalInProcess(host: IpamHost): IpamPlugin {
  const decodeShared = host.configDecoder(decodeSharedConfig);
  return {
    ...commands,
    add: (call, signal) => hostLocalAdd({ ...call, decodeShared, whenHeld: "same addresses" }, signal),
  };
}

const commands: Omit<IpamPlugin, "add"> = {
  del: (call, signal) => hostLocalDel(call, signal),
  check: (call, signal) => hostLocalCheck(call, signal),
  gc: (call, signal) => hostLocalGc(call, signal),
  status: (call) => hostLocalStatus(call),
};
