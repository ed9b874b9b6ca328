/** Runs our own `host-local` in this process. A second ADD of an attachment returns the same addresses. */
import { hostLocalAdd, hostLocalCheck } from "../ipam/hostlocal/add.ts";
import { hostLocalDel, hostLocalGc } from "../ipam/hostlocal/release.ts";
import { hostLocalStatus } from "../ipam/hostlocal/status.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";

export const hostLocalInProcess: IpamPlugin = {
  add: (call, signal) => hostLocalAdd({ ...call, whenHeld: "same addresses" }, signal),
  del: async (call, signal) => void (await hostLocalDel(call, signal)),
  check: (call, signal) => hostLocalCheck(call, signal),
  gc: (call, signal) => hostLocalGc(call, signal),
  status: (call) => hostLocalStatus(call),
};
