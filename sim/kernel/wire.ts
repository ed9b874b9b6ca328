/** The numbers of rtnetlink that the kernel model reads and writes, as in linux/rtnetlink.h and its neighbours. */
import type { Family } from "../../src/ip/address.ts";
import type { LinkKind, RouteKind } from "./model.ts";

export const MESSAGE = {
  newLink: 16,
  deleteLink: 17,
  getLink: 18,
  newAddress: 20,
  deleteAddress: 21,
  getAddress: 22,
  newRoute: 24,
  deleteRoute: 25,
  getRoute: 26,
  newNeighbour: 28,
  deleteNeighbour: 29,
  getNeighbour: 30,
  newRule: 32,
  deleteRule: 33,
  getRule: 34,
  newQdisc: 36,
  deleteQdisc: 37,
  getQdisc: 38,
  newFilter: 44,
  deleteFilter: 45,
  getFilter: 46,
} as const;

/** Multicast groups (RTNLGRP_*). */
export const GROUP = {
  link: 1,
  neighbour: 3,
  address: { 4: 5, 6: 9 },
  route: { 4: 7, 6: 11 },
  rule: { 4: 8, 6: 19 },
} as const;

export const AF = { inet: 2, bridge: 7, inet6: 10 } as const;

export const IFLA = {
  address: 1,
  broadcast: 2,
  name: 3,
  mtu: 4,
  link: 5,
  master: 10,
  transmitQueueLength: 13,
  operState: 16,
  linkInfo: 18,
  alias: 20,
  families: 26,
  group: 27,
  netnsFd: 28,
  transmitQueues: 31,
  receiveQueues: 32,
  carrier: 33,
} as const;
export const INFO = { kind: 1, data: 2 } as const;
export const VETH_PEER = 1;
export const VXLAN = { id: 1, link: 3, local: { 4: 4, 6: 17 }, learning: 7, port: 15 } as const;

export const IFA = { address: 1, local: 2, label: 3, flags: 8 } as const;
export const ADDRESS_FLAG = { secondary: 0x01, noDuplicateDetection: 0x02, tentative: 0x40, permanent: 0x80 } as const;

export const RTA = {
  destination: 1,
  link: 4,
  gateway: 5,
  priority: 6,
  preferredSource: 7,
  metrics: 8,
  table: 15,
} as const;
export const METRIC = { mtu: 2, advertisedSegment: 8 } as const;
export const ROUTE_FLAG = { linkDown: 16, onLink: 4, cloned: 0x200 } as const;
export const SCOPE = { universe: 0, site: 200, link: 253, host: 254, nowhere: 255 } as const;
export const TABLE = { default: 253, main: 254, local: 255 } as const;
export const KERNEL_PROTOCOL = 2;
export const ROUTE_KIND: Readonly<Record<RouteKind, number>> = {
  unicast: 1,
  local: 2,
  broadcast: 3,
  anycast: 4,
  multicast: 5,
  blackhole: 6,
  unreachable: 7,
  prohibit: 8,
  throw: 9,
};

export const RULE = { source: 2, priority: 6, table: 15 } as const;

export const NDA = { address: 1, mac: 2, link: 8 } as const;
export const NEIGHBOUR_STATE = { failed: 0x20, noArp: 0x40, permanent: 0x80 } as const;

export const LINK_KINDS: readonly LinkKind[] = ["veth", "vxlan", "ipip", "dummy", "ifb", "bridge"];

export function familyOf(number: number): Family | undefined {
  if (number === AF.inet) return 4;
  return number === AF.inet6 ? 6 : undefined;
}

export function numberOf(family: Family): number {
  return family === 4 ? AF.inet : AF.inet6;
}
