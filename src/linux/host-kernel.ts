/**
 * What the product needs from the kernel of the host it runs on. The real one is reached by system calls (`ownKernel`), the
 * model of a simulated host by functions (sim/kernel).
 */
import type { NetlinkProtocol } from "./netlink-channel.ts";
import { type NetlinkSocket, openNetlinkSocket, type SocketOpener } from "./netlink-socket.ts";
import {
  closeNetns,
  isNetnsAtPath,
  type Netns,
  openNetlinkSocketIn,
  openNetns,
  runInNetns,
  type Synchronous,
} from "./netns.ts";
import { readSysctl, writeSysctl } from "./sysctl.ts";

/** The settings of one network namespace. */
export interface Sysctls {
  /** Returns `undefined` if the kernel has no such setting. */
  readSysctl(name: string): string | undefined;
  /** Returns `absent` if the kernel has no such setting. */
  writeSysctl(name: string, value: string): "written" | "absent";
}

/** Its own methods are those of the host's namespace. */
export interface HostKernel extends SocketOpener, Sysctls {
  /** Returns `undefined` if the path does not exist; whether it is a namespace is checked when it is entered. */
  openNetns(path: string): Netns | undefined;
  closeNetns(netns: Netns): void;
  /** Whether its path still leads to it. */
  isNetnsAtPath(netns: Netns): boolean;
  openSocketIn(netns: Netns, protocol: NetlinkProtocol): NetlinkSocket;
  /** The settings may be used until the work returns. */
  withSysctlsOf<Value>(netns: Netns, work: (sysctls: Sysctls) => Synchronous<Value>): Value;
}

export const ownKernel: HostKernel = {
  openSocket: openNetlinkSocket,
  openNetns,
  closeNetns,
  isNetnsAtPath,
  openSocketIn: openNetlinkSocketIn,
  readSysctl,
  writeSysctl,
  withSysctlsOf: (netns, work) => runInNetns(netns, () => work({ readSysctl, writeSysctl })),
};
