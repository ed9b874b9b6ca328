/** The numbers of link messages, as in linux/if_link.h and linux/rtnetlink.h. */
import { putNumber } from "../../bytes.ts";

export const RTM = { newLink: 16, deleteLink: 17, getLink: 18 } as const;

export const LINK = {
  address: 1,
  name: 3,
  mtu: 4,
  link: 5,
  master: 10,
  transmitQueueLength: 13,
  info: 18,
  alias: 20,
  families: 26,
  group: 27,
  netnsFd: 28,
  extensionMask: 29,
  transmitQueues: 31,
  receiveQueues: 32,
} as const;

export const INFO = { kind: 1, data: 2 } as const;

/** In `LINK.families`, in the attribute of the family's number. */
export const IPV4_FAMILY = { number: 2, settings: 1 } as const;
export const IPV4_SETTING = { forwarding: 1, proxyArp: 3, reversePathFilter: 8 } as const;

export const IFF_UP = 1;

/** `struct ifinfomsg`. */
export function linkHeader(index: number, flags = 0, changed = 0): Uint8Array {
  const header = new Uint8Array(16);
  putNumber(header, 4, index);
  putNumber(header, 8, flags);
  putNumber(header, 12, changed);
  return header;
}
