/** Packets of any IP protocol, sent and received by raw sockets. */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { closeNetns, openNetns, runInNetns } from "../../src/linux/netns.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_RAW = 3;
const DO_NOT_WAIT = 0x40;
/** Raw sockets of IPv4 receive it; those of IPv6 do not. */
const IP_HEADER = 20;

export interface RawProbe {
  readonly from: string;
  readonly to: string;
  /** An address of `to`. */
  readonly target: string;
  readonly protocol: number;
  /** Milliseconds. */
  readonly patience: number;
}

/** Whether a packet of the protocol with this content arrives in time. */
export async function rawArrives({ from, to, target, protocol, patience }: RawProbe): Promise<boolean> {
  const address = parseAddress(target);
  if (address === undefined) throw new Error(`not an address: ${target}`);
  const [family, headerLength] = address.family === 4 ? [AF_INET, IP_HEADER] : [AF_INET6, 0];
  const [sender, receiver] = [rawSocket(from, family, protocol), rawSocket(to, family, protocol)];
  try {
    // IPv6: the flow information comes before the address, and the scope after it.
    const gap = address.family === 4 ? [] : [0, 0, 0, 0];
    const name = Uint8Array.of(family, 0, 0, 0, ...gap, ...addressBytes(address), ...new Uint8Array(8));
    const content = crypto.getRandomValues(new Uint8Array(32));
    if (libc.connect(sender, name, address.family === 4 ? 16 : 28) < 0) throw new Error("connect failed");
    if (libc.sendto(sender, content, content.length, 0) < 0) throw new Error("sendto failed");
    const buffer = new Uint8Array(200);
    for (const end = performance.now() + patience; performance.now() < end; await Bun.sleep(5)) {
      const length = libc.recv(receiver, buffer, buffer.length, DO_NOT_WAIT);
      if (length > 0 && buffer.subarray(headerLength, length).toHex() === content.toHex()) return true;
    }
    return false;
  } finally {
    for (const descriptor of [sender, receiver]) libc.close(descriptor);
  }
}

function rawSocket(path: string, family: number, protocol: number): number {
  const netns = openNetns(path);
  if (netns === undefined) throw new Error(`no namespace ${path}`);
  try {
    return runInNetns(netns, () => libc.socket(family, SOCK_RAW, protocol));
  } finally {
    closeNetns(netns);
  }
}
