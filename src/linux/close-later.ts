/**
 * Leaves the closing of a descriptor to the kernel, behind the end of this process.
 *
 * Closing a netfilter socket after elements were removed waits 8 to 15 ms for the
 * kernel's grace period, and whoever waits for this process would wait along.
 * A socket that lies, unread, in the queue of a socket that itself lies in that
 * queue can be reached by nobody: the kernel's own collector of such garbage
 * (net/unix/garbage.c) closes both in its own time, once the last end is gone.
 */
import { addressOf } from "../system-call.ts";
import { closeFile } from "./files.ts";
import * as libc from "./libc.ts";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0x80000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const CONTROL_HEADER = 16;

/**
 * The descriptor must not be used any more. Where the kernel will not have it, it is closed as ever. A process that
 * goes on wakes the collector itself, which works on its own in kernels of these years (since 6.9); an older one makes it wait.
 */
export function closeLater(fd: number, process: "ends" | "goes on"): void {
  const pair = new Int32Array(2);
  if (libc.socketpair(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0, pair) !== 0) {
    if (process === "goes on") closeFile(fd);
    return;
  }
  const [near = -1, far = -1] = pair;
  const message = messageWith([fd, far]);
  const isSent = libc.sendmsg(near, message.header, 0) >= 0;
  closeFile(far);
  if (isSent || process === "goes on") closeFile(fd);
  // That of a process which ends stays open to the end: its closing wakes the collector.
  if (process === "goes on") closeFile(near);
}

/** `struct msghdr` with the descriptors as its only content; the buffers must live until it is sent. */
function messageWith(descriptors: readonly number[]): { readonly header: Uint8Array; readonly buffers: unknown } {
  const content = new Uint8Array(1);
  const control = new Uint8Array(CONTROL_HEADER + 4 * descriptors.length);
  const controlView = new DataView(control.buffer);
  controlView.setBigUint64(0, BigInt(control.length), true);
  controlView.setInt32(8, SOL_SOCKET, true);
  controlView.setInt32(12, SCM_RIGHTS, true);
  for (const [index, descriptor] of descriptors.entries()) {
    controlView.setInt32(CONTROL_HEADER + 4 * index, descriptor, true);
  }
  const vector = BigUint64Array.of(BigInt(addressOf(content)), BigInt(content.length));
  const words = BigUint64Array.of(
    0n,
    0n,
    BigInt(addressOf(vector)),
    1n,
    BigInt(addressOf(control)),
    BigInt(control.length),
    0n,
  );
  return { header: new Uint8Array(words.buffer), buffers: [content, control, vector] };
}
