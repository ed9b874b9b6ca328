/**
 * The two ends of a netlink socket meet here: messages go in, replies and events come out. The real kernel is reached by
 * system calls; a simulated host answers with a model (sim/kernel). Error numbers are returned, not thrown: creating an
 * error takes longer than the system call.
 */
import { loadOnce } from "../load-once.ts";
import { errnoOf } from "./errno.ts";
import { closeFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

const PROTOCOL = { route: 0, netfilter: 12 } as const;

export type NetlinkProtocol = keyof typeof PROTOCOL;

export interface NetlinkChannel {
  /** One datagram of one or more messages. Returns 0, or the error number. */
  send(bytes: Uint8Array<ArrayBuffer>): number;
  /** Like `send`, while the caller does other work. */
  sendInBackground(bytes: Uint8Array<ArrayBuffer>): Promise<number>;
  /** Writes the next datagram into the buffer. Returns its whole length, or the negative error number. */
  receive(buffer: Uint8Array<ArrayBuffer>): number;
  /** Both directions have room for datagrams of this size. */
  enlarge(bytes: number): void;
  /** From now on also gets what the kernel sends to these groups, as much as fits into a buffer of this size. */
  join(groups: readonly number[], bufferBytes: number): void;
  /** What arrives, without polling, until the signal is aborted. `lost`: something did not fit into the buffer. */
  arrivals(signal: AbortSignal): AsyncGenerator<Uint8Array | "lost">;
  /** The address, which the kernel assigns with the first message. */
  port(): number;
  close(): void;
}

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0x80000;
const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;

const loadFiles = loadOnce(() => import("node:fs"));

/** To the kernel of this machine, in the current namespace of the thread. */
export function openNetlinkChannel(protocol: NetlinkProtocol): NetlinkChannel {
  const fd = libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, PROTOCOL[protocol]);
  if (fd < 0) throw new KernelError(`open a netlink socket (${protocol})`, libc.lastErrno());
  try {
    setOption(fd, SOL_NETLINK, NETLINK_EXT_ACK, Int32Array.of(1));
    setOption(fd, SOL_NETLINK, NETLINK_CAP_ACK, Int32Array.of(1));
    return new SocketChannel(fd, protocol);
  } catch (error) {
    closeFile(fd);
    throw error;
  }
}

class SocketChannel implements NetlinkChannel {
  constructor(
    private readonly fd: number,
    private readonly protocol: NetlinkProtocol,
  ) {}

  send(bytes: Uint8Array<ArrayBuffer>): number {
    return libc.sendto(this.fd, bytes, bytes.length, 0) < 0 ? libc.lastErrno() : 0;
  }

  /** A thread of the language runtime sends it and waits. */
  async sendInBackground(bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    const { write } = await loadFiles();
    const { promise, resolve } = Promise.withResolvers<number>();
    write(this.fd, bytes, (failure) => resolve(failure === null ? 0 : Math.abs(failure.errno ?? errnoOf("EIO"))));
    return promise;
  }

  receive(buffer: Uint8Array<ArrayBuffer>): number {
    const length = libc.recv(this.fd, buffer, buffer.length, MSG_TRUNC | MSG_DONTWAIT);
    return length < 0 ? -libc.lastErrno() : length;
  }

  enlarge(bytes: number): void {
    setOption(this.fd, SOL_SOCKET, SO_SNDBUFFORCE, Int32Array.of(bytes));
    setOption(this.fd, SOL_SOCKET, SO_RCVBUFFORCE, Int32Array.of(bytes));
  }

  join(groups: readonly number[], bufferBytes: number): void {
    setOption(this.fd, SOL_SOCKET, SO_RCVBUFFORCE, Int32Array.of(bufferBytes));
    // A socket without an address would get nothing.
    const address = Uint32Array.of(AF_NETLINK, 0, 0);
    if (libc.bind(this.fd, address, address.byteLength) !== 0)
      throw new KernelError(`bind a netlink socket (${this.protocol})`, libc.lastErrno());
    for (const group of groups) setOption(this.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, Int32Array.of(group));
  }

  async *arrivals(signal: AbortSignal): AsyncGenerator<Uint8Array | "lost"> {
    while (!signal.aborted) {
      const reader = Bun.file(this.fd).stream().getReader();
      const cancel = () => void reader.cancel().catch(() => {});
      signal.addEventListener("abort", cancel, { once: true });
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return;
          yield value;
        }
      } catch (error) {
        if (!hasCode(error, "ENOBUFS")) throw error;
        yield "lost";
      } finally {
        signal.removeEventListener("abort", cancel);
        cancel();
      }
    }
  }

  port(): number {
    const address = new Uint32Array(3);
    if (libc.getsockname(this.fd, address, Uint32Array.of(address.byteLength)) === 0) return address[1] ?? 0;
    throw new KernelError("read the address of a netlink socket", libc.lastErrno());
  }

  close(): void {
    closeFile(this.fd);
  }
}

function setOption(fd: number, level: number, name: number, value: Int32Array): void {
  if (libc.setsockopt(fd, level, name, value, value.byteLength) === 0) return;
  throw new KernelError(`set option ${name} of a netlink socket`, libc.lastErrno());
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
