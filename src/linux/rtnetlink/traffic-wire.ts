/** The numbers of traffic control messages, as in linux/pkt_sched.h, linux/pkt_cls.h and linux/rtnetlink.h. */
export const RTM = {
  newQdisc: 36,
  deleteQdisc: 37,
  getQdisc: 38,
  newFilter: 44,
  deleteFilter: 45,
  getFilter: 46,
} as const;

/** Attributes that qdiscs and filters share. */
export const TRAFFIC = { kind: 1, options: 2 } as const;

export const HEADER_LENGTH = 20;

/** Parents: for outgoing and for incoming traffic. */
export const ROOT = 0xffffffff;
export const INGRESS = 0xfffffff1;
export const INGRESS_HANDLE = 0xffff0000;

export interface TrafficHeader {
  readonly linkIndex: number;
  readonly handle?: number;
  readonly parent?: number;
  readonly info?: number;
}

/** `struct tcmsg`. */
export function trafficHeader({ linkIndex, handle = 0, parent = 0, info = 0 }: TrafficHeader): Uint8Array {
  const header = new Uint8Array(HEADER_LENGTH);
  const view = new DataView(header.buffer);
  view.setInt32(4, linkIndex, true);
  view.setUint32(8, handle, true);
  view.setUint32(12, parent, true);
  view.setUint32(16, info, true);
  return header;
}
