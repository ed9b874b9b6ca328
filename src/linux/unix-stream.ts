/**
 * A Unix stream socket to another process of this host, with direct system calls:
 * for a process that lives for some milliseconds and has nothing else to do
 * meanwhile. It never waits longer than the given limits, whatever happens to the
 * other process.
 */
import { numberAt, putNumber, putText } from "../bytes.ts";
import { addressOf, lastErrno, systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_OUT } from "./poll.ts";

const AF_UNIX = 1;
/** Close-on-exec and non-blocking: otherwise `connect` would wait forever if the listener's queue is full. */
const SOCK_STREAM = 1 | 0x80000 | 0x800;
const TRY_AGAIN = 11;
const FAMILY_BYTES = 2;
/** `sun_path`, with the zero byte at its end. */
const PATH_BYTES = 108;
const SHUT_WR = 1;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
/** `struct ucred`: process, user and group, 32 bits each. */
const CREDENTIALS_BYTES = 12;
const UID_AT = 4;

/** Whether a socket can have this path: it is short enough and plain ASCII. */
export function fitsUnixAddress(path: string): boolean {
  return unixAddress(path) !== undefined;
}

/** The descriptor; `undefined` if nobody listens, or if the listener's queue is full. */
export function connectUnix(path: string): number | undefined {
  const address = unixAddress(path);
  if (address === undefined) return undefined;
  const stream = systemCall("socket", AF_UNIX, SOCK_STREAM);
  if (stream < 0) return undefined;
  if (systemCall("connect", stream, address, address.length) === 0) return stream;
  closeStream(stream);
  return undefined;
}

/** Sends the first `count` bytes; returns whether all were sent. Waits at most this long each time that the buffer is full. */
export function sendAll(stream: number, bytes: Uint8Array, count: number, patienceMilliseconds: number): boolean {
  for (let sent = 0; sent < count; ) {
    const written = systemCall("write", stream, addressOf(bytes) + sent, count - sent);
    if (written > 0) sent += written;
    else if (lastErrno() !== TRY_AGAIN || !isReadyWithin(stream, POLL_OUT, patienceMilliseconds)) return false;
  }
  return true;
}

/** Whether the listener runs as the user of this process: a config with its password is for no other. */
export function isPeerOfSameUser(stream: number): boolean {
  return userOfPeer(stream) === systemCall("geteuid", 0);
}

/** The effective user of the process at the other end when it connected or began to listen; `undefined` if unknown. */
export function userOfPeer(stream: number): number | undefined {
  const credentials = new Uint8Array(CREDENTIALS_BYTES);
  const length = new Uint8Array(4);
  putNumber(length, 0, CREDENTIALS_BYTES);
  const failed = systemCall("getsockopt", stream, SOL_SOCKET, SO_PEERCRED, addressOf(credentials), addressOf(length));
  return failed === 0 ? numberAt(credentials, UID_AT) : undefined;
}

/** Nothing more will be sent; the other side can still send. */
export function endSending(stream: number): void {
  systemCall("shutdown", stream, SHUT_WR);
}

/** Reads what is available. Returns the number of bytes; 0 at the end of the stream or if it is broken. */
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
