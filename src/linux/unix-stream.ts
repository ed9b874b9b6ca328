/**
 * A conversation with another process of this host, by the system calls
 * themselves: for a process that lives for some milliseconds and has nothing
 * else to do meanwhile. It never waits for longer than it is told to, however
 * the other process fares.
 */
import { putText } from "../bytes.ts";
import { addressOf, lastErrno, systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_OUT } from "./poll.ts";

const AF_UNIX = 1;
/** With close-on-exec; and it does not block: where too many stand in line already, `connect` would wait for ever. */
const SOCK_STREAM = 1 | 0x80000 | 0x800;
const TRY_AGAIN = 11;
const FAMILY_BYTES = 2;
/** `sun_path`, with the zero behind it. */
const PATH_BYTES = 108;
const SHUT_WR = 1;

/** Whether such a socket can be found: its path is short enough, and plain ASCII. */
export function fitsUnixAddress(path: string): boolean {
  return unixAddress(path) !== undefined;
}

/** The descriptor; `undefined` where nobody listens, or who listens does not keep up. */
export function connectUnix(path: string): number | undefined {
  const address = unixAddress(path);
  if (address === undefined) return undefined;
  const stream = systemCall("socket", AF_UNIX, SOCK_STREAM);
  if (stream < 0) return undefined;
  if (systemCall("connect", stream, address, address.length) === 0) return stream;
  closeStream(stream);
  return undefined;
}

/** Sends the first `count` bytes, and answers whether all were taken. Waits for as long each time that the other does not keep up. */
export function sendAll(stream: number, bytes: Uint8Array, count: number, patienceMilliseconds: number): boolean {
  for (let sent = 0; sent < count; ) {
    const taken = systemCall("write", stream, addressOf(bytes) + sent, count - sent);
    if (taken > 0) sent += taken;
    else if (lastErrno() !== TRY_AGAIN || !isReadyWithin(stream, POLL_OUT, patienceMilliseconds)) return false;
  }
  return true;
}

/** No more will be sent; what the other says is still heard. */
export function endSending(stream: number): void {
  systemCall("shutdown", stream, SHUT_WR);
}

/** Puts what is there to be read. Answers how many bytes that was; 0 at the end, or where the stream broke. */
export function receiveSome(stream: number, bytes: Uint8Array, at: number): number {
  return Math.max(systemCall("read", stream, addressOf(bytes) + at, bytes.length - at), 0);
}

export function closeStream(stream: number): void {
  systemCall("close", stream);
}

function unixAddress(path: string): Uint8Array | undefined {
  if (path.length >= PATH_BYTES) return undefined;
  const address = new Uint8Array(FAMILY_BYTES + PATH_BYTES);
  address[0] = AF_UNIX;
  return putText(address, FAMILY_BYTES, path) === undefined ? undefined : address;
}
