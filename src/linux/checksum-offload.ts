/**
 * Whether a link leaves the checksums of its packets to the device below it (transmit checksum offload).
 *
 * The request is the one of `ethtool -K LINK tx off`: an ioctl on any socket of the namespace.
 */

import { addressOf } from "../system-call.ts";
import { closeFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

const AF_INET = 2;
const SOCK_DGRAM_CLOEXEC = 2 | 0x80000;
const SIOCETHTOOL = 0x8946;
const COMMAND = { read: 0x16, write: 0x17 } as const;
/** `struct ifreq`: a name, and a pointer to the command and its value. */
const NAME_LENGTH = 16;
const REQUEST_LENGTH = 40;

/** In the current namespace of the thread. */
export function readChecksumOffload(link: string): boolean {
  return carryOut(link, Uint32Array.of(COMMAND.read, 0), `read the checksum offload of link "${link}"`);
}

export function setChecksumOffload(link: string, state: "on" | "off"): void {
  const value = Uint32Array.of(COMMAND.write, state === "on" ? 1 : 0);
  carryOut(link, value, `turn ${state} the checksum offload of link "${link}"`);
}

/** Returns the value after the command. */
function carryOut(link: string, command: Uint32Array, action: string): boolean {
  const request = new Uint8Array(REQUEST_LENGTH);
  new TextEncoder().encodeInto(link, request.subarray(0, NAME_LENGTH - 1));
  new DataView(request.buffer).setBigUint64(NAME_LENGTH, BigInt(addressOf(command)), true);
  const socket = libc.socket(AF_INET, SOCK_DGRAM_CLOEXEC, 0);
  if (socket < 0) throw new KernelError(action, libc.lastErrno());
  const outcome = libc.ioctl(socket, SIOCETHTOOL, request);
  const errno = outcome < 0 ? libc.lastErrno() : 0;
  closeFile(socket);
  if (errno !== 0) throw new KernelError(action, errno);
  return command[1] !== 0;
}
