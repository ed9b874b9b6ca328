/** TCP connections by plain system calls in one thread: their time is that of the kernel, without an event loop. */
import { dlopen } from "bun:ffi";
import { addressBytes, parseAddress } from "../../src/ip/address.ts";

const libc = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
}).symbols;

const AF_INET = 2;
const SOCK_STREAM = 1;
const SOL_SOCKET = 1;
const SO_LINGER = 13;
const SO_SNDTIMEO = 21;
const BACKLOG = 16;
/** On, for no time: closing resets the connection, so that its port is free at once. */
const NO_LINGER = Int32Array.of(1, 0);
const CONNECT_LIMIT = BigInt64Array.of(5n, 0n);

export interface Listener extends Disposable {
  readonly fd: number;
}

/** In the current network namespace of this thread. */
export function listenAt(port: number): Listener {
  const fd = opened();
  const address = socketAddress("0.0.0.0", port);
  check("bind", libc.bind(fd, address, address.length));
  check("listen", libc.listen(fd, BACKLOG));
  return { fd, [Symbol.dispose]: () => void libc.close(fd) };
}

/** Returns the microseconds until the connection was established. */
export function connectAndClose(
  to: { readonly address: string; readonly port: number },
  { fd: listener }: Listener,
): number {
  const fd = opened();
  const address = socketAddress(to.address, to.port);
  check("setsockopt", libc.setsockopt(fd, SOL_SOCKET, SO_LINGER, NO_LINGER, NO_LINGER.byteLength));
  check("setsockopt", libc.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, CONNECT_LIMIT, CONNECT_LIMIT.byteLength));
  const started = Bun.nanoseconds();
  const code = libc.connect(fd, address, address.length);
  const nanoseconds = Bun.nanoseconds() - started;
  check("connect", code);
  const accepted = check("accept", libc.accept(listener, null, null));
  libc.close(fd);
  libc.close(accepted);
  return nanoseconds / 1000;
}

function opened(): number {
  return check("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
}

function socketAddress(address: string, port: number): Uint8Array {
  const parsed = parseAddress(address);
  if (parsed === undefined) throw new Error(`"${address}" is not an address`);
  return Uint8Array.of(AF_INET, 0, port >> 8, port & 255, ...addressBytes(parsed), ...new Uint8Array(8));
}

function check(call: string, code: number): number {
  if (code < 0) throw new Error(`${call} failed`);
  return code;
}
