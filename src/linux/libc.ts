/** System calls with the names and arguments of the C library. Each returns a negative number if it failed. */
import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "../system-call.ts";

export { lastErrno } from "../system-call.ts";

type Bytes = NodeJS.TypedArray;

export const open = (path: string, flags: number, mode: number) =>
  systemCall("openat", CURRENT_FOLDER, pathBytes(path), flags, mode);
export const close = (file: number) => systemCall("close", file);
export const read = (file: number, buffer: Bytes, length: number) => systemCall("read", file, buffer, length);
export const write = (file: number, buffer: Bytes, length: number) => systemCall("write", file, buffer, length);
export const unlink = (path: string) => systemCall("unlinkat", CURRENT_FOLDER, pathBytes(path));
export const flock = (file: number, operation: number) => systemCall("flock", file, operation);

export const socket = (family: number, type: number, protocol: number) => systemCall("socket", family, type, protocol);
export const bind = (socket: number, address: Bytes, length: number) => systemCall("bind", socket, address, length);
export const connect = (socket: number, address: Bytes, length: number) =>
  systemCall("connect", socket, address, length);
export const sendto = (socket: number, buffer: Bytes, length: number, flags: number) =>
  systemCall("sendto", socket, buffer, length, flags);
export const recv = (socket: number, buffer: Bytes, length: number, flags: number) =>
  systemCall("recvfrom", socket, buffer, length, flags);
export const ioctl = (file: number, request: number, argument: Bytes) =>
  systemCall("ioctl", file, request, addressOf(argument));
export const setns = (file: number, kind: number) => systemCall("setns", file, kind);
export const unshare = (kinds: number) => systemCall("unshare", kinds);
export const prctl = (option: number, value: Bytes | number) => systemCall("prctl", option, value);
export const getppid = () => systemCall("getppid", 0);
/** `args` and `variables` are lists of the addresses of texts that end with a zero byte. */
export const execve = (path: Bytes, args: Bytes, variables: Bytes) =>
  systemCall("execve", addressOf(path), args, addressOf(variables));

export function setsockopt(socket: number, level: number, name: number, value: Bytes, length: number): number {
  return systemCall("setsockopt", socket, level, name, addressOf(value), length);
}

/** `length` is the size of the value, and after the call the number of bytes written. */
export function getsockopt(socket: number, level: number, name: number, value: Bytes, length: Bytes): number {
  return systemCall("getsockopt", socket, level, name, addressOf(value), addressOf(length));
}

/** `length` is the size of the address, and after the call the number of bytes written. */
export function getsockname(socket: number, address: Bytes, length: Bytes): number {
  return systemCall("getsockname", socket, address, addressOf(length));
}
