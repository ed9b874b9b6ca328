/**
 * Sends bytes by TCP and counts the segments that had to be sent again, as the kernel does (`TCP_INFO`): how much a path
 * loses of what applications send. The socket is non-blocking, in the current namespace of the thread.
 */
import type { Address } from "../ip/address.ts";
import { errnoOf } from "./errno.ts";
import { closeFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import type { Patience } from "./measure-path.ts";
import { socketAddress } from "./socket-address.ts";
import { openSocket } from "./unchecked-datagrams.ts";

const SOCK_STREAM = 1;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SOL_SOCKET = 1;
const SO_LINGER = 13;
/** `struct linger`: on, for no time. */
const LINGER_NOT = Int32Array.of(1, 0);
/** Do not wait; no signal if the other end is gone. */
const SEND_FLAGS = 0x40 | 0x4000;
const RECEIVE_FLAGS = 0x40;
/** `struct tcp_info`; a kernel before 4.20 writes less of it. */
const INFO_BYTES = 232;
const AT = { repeated: 100, acknowledged: 120, sent: 156, received: 216 } as const;
/** The kernel counts the beginning of the connection as a byte. */
const BYTES_OF_BEGINNING = 1n;
const POLL_MILLISECONDS = 20;

export interface CountedTransfer {
  /** `nothing`: not one byte was acknowledged. `some`: the time was over before the reply. */
  readonly arrived: "all" | "some" | "nothing";
  /** Segments with data, each counted once. */
  readonly segments: number;
  /** Segments that were sent again, except those that had arrived before. */
  readonly repeated: number;
}

export interface TransferPlace {
  readonly remote: Address;
  readonly port: number;
  /** After so many the other end replies. */
  readonly bytes: number;
}

/** Ends with the reply, or when the time of the patience is over. `refused`: it was closed or refused, so packets arrive. */
export async function transfer(
  { remote, port, bytes }: TransferPlace,
  { replyMilliseconds, wait, signal }: Omit<Patience, "tries">,
): Promise<CountedTransfer | "refused"> {
  const socket = openSocket(remote.family, SOCK_STREAM, IPPROTO_TCP);
  try {
    const address = socketAddress(remote, port);
    if (libc.connect(socket, address, address.length) < 0 && libc.lastErrno() !== errnoOf("EINPROGRESS"))
      return "refused";
    let left = new Uint8Array(bytes);
    for (let waited = 0; waited < replyMilliseconds && !signal.aborted; waited += POLL_MILLISECONDS) {
      const sent = left.length === 0 ? 0 : libc.sendto(socket, left, left.length, SEND_FLAGS);
      if (sent < 0 && libc.lastErrno() !== errnoOf("EAGAIN")) return "refused";
      left = left.subarray(Math.max(sent, 0));
      const received = libc.recv(socket, new Uint8Array(1), 1, RECEIVE_FLAGS);
      if (received > 0) return counts(socket, "all");
      if (received === 0 || libc.lastErrno() !== errnoOf("EAGAIN")) return "refused";
      await wait(POLL_MILLISECONDS, signal);
    }
    return counts(socket, "some");
  } finally {
    // What is not acknowledged is not sent again: it would be counted with what comes next.
    libc.setsockopt(socket, SOL_SOCKET, SO_LINGER, LINGER_NOT, LINGER_NOT.byteLength);
    closeFile(socket);
  }
}

function counts(socket: number, arrived: "all" | "some"): CountedTransfer {
  const info = new Uint8Array(INFO_BYTES);
  if (libc.getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, Int32Array.of(INFO_BYTES)) < 0)
    throw new KernelError("count the segments of a connection", libc.lastErrno());
  const view = new DataView(info.buffer);
  const repeated = view.getUint32(AT.repeated, true);
  return {
    arrived: view.getBigUint64(AT.acknowledged, true) > BYTES_OF_BEGINNING ? arrived : "nothing",
    segments: Math.max(view.getUint32(AT.sent, true) - repeated, 0),
    repeated: Math.max(repeated - view.getUint32(AT.received, true), 0),
  };
}
