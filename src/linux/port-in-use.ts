/**
 * Checks whether a process of this host listens on a port, by binding to it for a
 * moment: cheap, and it detects every listener. A TCP server that starts at that very
 * moment can still bind, since TCP sockets may share an address on which nobody
 * listens yet.
 */
import type { Address } from "../ip/address.ts";
import { errnoOf } from "./errno.ts";
import { closeFile } from "./files.ts";
import * as libc from "./libc.ts";
import { DOMAIN, socketAddress } from "./socket-address.ts";

const SOCKET_TYPE = { tcp: 1, udp: 2 } as const;
const CLOSE_ON_EXEC = 0x80000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;

/** The address zero means every address of its family. Returns `false` if it cannot be determined. */
export function isPortInUse(protocol: keyof typeof SOCKET_TYPE, address: Address, port: number): boolean {
  const socket = libc.socket(DOMAIN[address.family], SOCKET_TYPE[protocol] | CLOSE_ON_EXEC, 0);
  if (socket < 0) return false;
  const on = Int32Array.of(1);
  // Connections that have just ended do not count. With UDP, the option would allow to share a port that is in use.
  if (protocol === "tcp") libc.setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, on, on.byteLength);
  if (address.family === 6) libc.setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, on, on.byteLength);
  const place = socketAddress(address, port);
  const isRefused = libc.bind(socket, place, place.length) !== 0 && libc.lastErrno() === errnoOf("EADDRINUSE");
  closeFile(socket);
  return isRefused;
}
