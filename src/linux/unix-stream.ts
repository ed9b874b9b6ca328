/**
 * A conversation with another process of this host, by the system calls
 * themselves: for a process that lives for some milliseconds and has nothing
 * else to do meanwhile.
 */
import * as libc from "./libc.ts";

const AF_UNIX = 1;
const SOCK_STREAM_CLOEXEC = 1 | 0x80000;
const FAMILY_BYTES = 2;
/** `sun_path`, with the zero behind it. */
const PATH_BYTES = 108;
const SHUT_WR = 1;
const POLL_IN = 0x1;
const CHUNK = 8 * 1024;

/** Whether a socket can have this path at all. */
export function fitsUnixAddress(path: string): boolean {
  return new TextEncoder().encode(path).length < PATH_BYTES;
}

/** The descriptor; `undefined` where nobody listens. */
export function connectUnix(path: string): number | undefined {
  const address = new Uint8Array(FAMILY_BYTES + PATH_BYTES);
  address[0] = AF_UNIX;
  const { read } = new TextEncoder().encodeInto(path, address.subarray(FAMILY_BYTES, -1));
  if (read < path.length) return undefined;
  const stream = libc.socket(AF_UNIX, SOCK_STREAM_CLOEXEC, 0);
  if (stream < 0) return undefined;
  if (libc.connect(stream, address, address.length) === 0) return stream;
  libc.close(stream);
  return undefined;
}

/** Answers whether all was taken. */
export function sendAll(stream: number, bytes: Uint8Array): boolean {
  for (let rest = bytes; rest.length > 0; ) {
    const count = libc.write(stream, rest, rest.length);
    if (count <= 0) return false;
    rest = rest.subarray(count);
  }
  return true;
}

/** No more will be sent; what the other says is still heard. */
export function endSending(stream: number): void {
  libc.shutdown(stream, SHUT_WR);
}

/** Waits for as long; a signal ends the wait early. Also a stream at its end is readable. */
export function isReadableWithin(stream: number, milliseconds: number): boolean {
  const request = Int16Array.of(stream & 0xffff, stream >> 16, POLL_IN, 0);
  return libc.poll(request, 1, milliseconds) > 0;
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
