/**
 * A conversation with another process of this host, by the system calls
 * themselves: for a process that lives for some milliseconds and has nothing
 * else to do meanwhile. It never waits for longer than it is told to, however
 * the other process fares.
 */
import { lastErrno, systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_OUT } from "./poll.ts";

const AF_UNIX = 1;
/** With close-on-exec; and it does not block: where too many stand in line already, `connect` would wait for ever. */
const SOCK_STREAM = 1 | 0x80000 | 0x800;
const TRY_AGAIN = 11;
const FAMILY_BYTES = 2;
/** `sun_path`, with the zero behind it. */
const PATH_BYTES = 108;
const SHUT_WR = 1;
const CHUNK = 8 * 1024;

/** Whether a socket can have this path at all. */
export function fitsUnixAddress(path: string): boolean {
  return new TextEncoder().encode(path).length < PATH_BYTES;
}

/** The descriptor; `undefined` where nobody listens, or who listens does not keep up. */
export function connectUnix(path: string): number | undefined {
  const address = new Uint8Array(FAMILY_BYTES + PATH_BYTES);
  address[0] = AF_UNIX;
  const { read } = new TextEncoder().encodeInto(path, address.subarray(FAMILY_BYTES, -1));
  if (read < path.length) return undefined;
  const stream = systemCall("socket", AF_UNIX, SOCK_STREAM);
  if (stream < 0) return undefined;
  if (systemCall("connect", stream, address, address.length) === 0) return stream;
  systemCall("close", stream);
  return undefined;
}

/** Answers whether all was taken. Waits for as long each time that the other does not keep up. */
export function sendAll(stream: number, bytes: Uint8Array, patienceMilliseconds: number): boolean {
  for (let rest = bytes; rest.length > 0; ) {
    const count = systemCall("write", stream, rest, rest.length);
    if (count > 0) rest = rest.subarray(count);
    else if (lastErrno() !== TRY_AGAIN || !isReadyWithin(stream, POLL_OUT, patienceMilliseconds)) return false;
  }
  return true;
}

/** No more will be sent; what the other says is still heard. */
export function endSending(stream: number): void {
  systemCall("shutdown", stream, SHUT_WR);
}

/** What is there to be read, in one piece; empty at the end, or where the stream broke. */
export function receiveSome(stream: number): Uint8Array {
  const buffer = new Uint8Array(CHUNK);
  const count = systemCall("read", stream, buffer, buffer.length);
  return buffer.subarray(0, Math.max(count, 0));
}

export function closeStream(stream: number): void {
  systemCall("close", stream);
}
