/**
 * Network namespaces: open, compare, enter and leave.
 *
 * `setns` moves only this thread: synchronous file access and sockets opened
 * meanwhile use the other namespace, whereas `fetch` and asynchronous file access run
 * on other threads, outside it. So whatever runs inside must be synchronous, which
 * the type of `runInNetns` enforces; nothing else of the program can run in between.
 */
import { PluginError } from "../errors.ts";
import { statusIn, statusOf } from "../file-status.ts";
import { quoted } from "../quote.ts";
import { closeFile, isSameFile, openToRead, placeOf } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import type { NetlinkProtocol } from "./netlink-channel.ts";
import { type NetlinkSocket, openNetlinkSocket } from "./netlink-socket.ts";

const OWN_NAMESPACES = "/proc/thread-self/ns";
const NET = "net";
export const OWN_NETNS = `${OWN_NAMESPACES}/${NET}`;
const CLONE_NEWNET = 0x40000000;
const UNIX_DATAGRAM = { family: 1, type: 2 | 0x80000 } as const;
const SOL_SOCKET = 1;
const SO_NETNS_COOKIE = 71;

export interface Netns {
  readonly path: string;
  readonly fd: number;
}

/** What can run in another namespace. */
export type Synchronous<Value> = Value extends PromiseLike<unknown> ? never : Value;

/** Returns `undefined` if the path does not exist; whether it is a namespace is checked when it is entered. */
export function openNetns(path: string): Netns | undefined {
  try {
    const fd = openToRead(path);
    return fd === undefined ? undefined : { path, fd };
  } catch (error) {
    throw new PluginError("netns-invalid", `Cannot open network namespace ${quoted(path)}`, { cause: error });
  }
}

export function closeNetns(netns: Netns): void {
  closeFile(netns.fd);
}

/** Whether its path still leads to it: a runtime removes the path when it ends the container, whoever has it open. */
export function isNetnsAtPath({ path, fd }: Netns): boolean {
  const place = placeOf(path);
  return place !== undefined && place === statusOf(fd)?.place;
}

/** Whether two paths are the same namespace; `false` if one does not exist. */
export function isSameNetns(path: string, other: string): boolean {
  return isSameFile(path, other);
}

/** Whether the path is the current namespace of this thread. */
export function isOwnNetns(path: string): boolean {
  return isSameNetns(path, OWN_NETNS);
}

/**
 * A number that the kernel does not assign to another namespace until the next boot, unlike an inode, which is
 * reused; `undefined` if the path does not exist or the kernel is older than 5.14.
 */
export function netnsCookie(path: string): bigint | undefined {
  const netns = openNetns(path);
  if (netns === undefined) return undefined;
  try {
    return runInNetns(netns, ownCookie);
  } finally {
    closeNetns(netns);
  }
}

function ownCookie(): bigint | undefined {
  const socket = libc.socket(UNIX_DATAGRAM.family, UNIX_DATAGRAM.type, 0);
  if (socket < 0) return undefined;
  const cookie = new BigUint64Array(1);
  const outcome = libc.getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, cookie, Int32Array.of(cookie.byteLength));
  closeFile(socket);
  return outcome === 0 ? cookie[0] : undefined;
}

/** The namespace to which the thread of a process that stays must always return. */
export interface HomeNetns {
  /** Whether the path is this namespace. */
  isNamedBy(path: string): boolean;
  /** Whether the thread is in this namespace now, according to the kernel. */
  isHere(): boolean;
}

/** Records the current namespace of this thread as its home. */
export function keepHome(): HomeNetns {
  const folder = openOwn(OWN_NAMESPACES);
  const here = () => statusIn(folder, NET)?.place;
  const home = here();
  return { isNamedBy: (path) => home !== undefined && placeOf(path) === home, isHere: () => here() === home };
}

/** Runs the function inside the namespace. The thread leaves it again whether the function returns or throws. */
export function runInNetns<Value>(netns: Netns, work: () => Synchronous<Value>): Value {
  const home = openOwn(OWN_NETNS);
  try {
    if (libc.setns(netns.fd, CLONE_NEWNET) !== 0) {
      const reason = new KernelError(`enter network namespace ${quoted(netns.path)}`, libc.lastErrno());
      throw new PluginError("netns-invalid", reason.message, { cause: reason });
    }
    try {
      return work();
    } finally {
      leaveTo(home);
    }
  } finally {
    closeFile(home);
  }
}

/** Runs the function inside a new namespace, which is gone afterwards with everything in it. */
export function runInNewNetns<Value>(work: () => Synchronous<Value>): Value {
  const home = openOwn(OWN_NETNS);
  try {
    if (libc.unshare(CLONE_NEWNET) !== 0) throw new KernelError("create a network namespace", libc.lastErrno());
    try {
      return work();
    } finally {
      leaveTo(home);
    }
  } finally {
    closeFile(home);
  }
}

/** A socket to the namespace that can be used from outside it. */
export function openNetlinkSocketIn(netns: Netns, protocol: NetlinkProtocol): NetlinkSocket {
  return runInNetns(netns, () => openNetlinkSocket(protocol));
}

function openOwn(path: string): number {
  const file = openToRead(path);
  if (file !== undefined) return file;
  throw new PluginError("internal", "Cannot open the current network namespace: /proc is not mounted");
}

function leaveTo(home: number): void {
  if (libc.setns(home, CLONE_NEWNET) === 0) return;
  // To continue would change the container's namespace instead of the host's.
  throw new PluginError("internal", `Cannot leave a network namespace: error number ${libc.lastErrno()}`);
}
