/**
 * A conversation with another process of this host, by the system calls
 * themselves: for a process that lives for some milliseconds and has nothing
 * else to do meanwhile. It never waits for longer than it is told to, however
 * the other process fares.
 */
import * as libc from "./libc.ts";

const AF_UNIX = 1;
/** With close-on-exec; and it does not block: where too many stand in line already, `connect` would wait for ever. */
const SOCK_STREAM = 1 | 0x80000 | 0x800;
const TRY_AGAIN = 11;
const FAMILY_BYTES = 2;
/** `sun_path`, with the zero behind it. */
const PATH_BYTES = 108;
const SHUT_WR = 1;
const POLL_IN = 0x1;
const POLL_OUT = 0x4;
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
  const stream = libc.socket(AF_UNIX, SOCK_STREAM, 0);
  if (stream < 0) return undefined;
  if (libc.connect(stream, address, address.length) === 0) return stream;
  libc.close(stream);
  return undefined;
}

/** Answers whether all was taken. Waits for as long each time that the other does not keep up. */
export function sendAll(stream: number, bytes: Uint8Array, patienceMilliseconds: number): boolean {
  for (let rest = bytes; rest.length > 0; ) {
    const count = libc.write(stream, rest, rest.length);
    if (count > 0) rest = rest.subarray(count);
    else if (libc.lastErrno() !== TRY_AGAIN || !isReadyWithin(stream, POLL_OUT, patienceMilliseconds)) return false;
  }
  return true;
}

/** No more will be sent; what the other says is still heard. */
export function endSending(stream: number): void {
  libc.shutdown(stream, SHUT_WR);
}

/** Waits for as long; a signal ends the wait early. Also a stream at its end is readable. */
export function isReadableWithin(stream: number, milliseconds: number): boolean {
  return isReadyWithin(stream, POLL_IN, milliseconds);
}

/** What is there to be read, in one piece; empty at the end, or where the stream broke. */
export function receiveSome(stream: number): Uint8Array {
  const buffer = new Uint8Array(CHUNK);
  const count = libc.read(stream, buffer, buffer.length);
  return buffer.subarray(0, Math.max(count, 0));
}

export function closeStream(stream: number): void {
  libc.close(stream);
}

function isReadyWithin(stream: number, event: number, milliseconds: number): boolean {
  const request = Int16Array.of(stream & 0xffff, stream >> 16, event, 0);
  return libc.poll(request, 1, milliseconds) > 0;
}
