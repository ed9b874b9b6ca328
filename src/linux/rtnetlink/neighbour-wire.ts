/** The numbers of messages about neighbours and forwarding entries, as in linux/neighbour.h. */
export const RTM_NEIGHBOUR = { new: 28, delete: 29, get: 30 } as const;
export const NEIGHBOUR = { address: 1, mac: 2, link: 8 } as const;
export const NEIGHBOUR_STATE = { noArp: 0x40, permanent: 0x80 } as const;
export const NEIGHBOUR_HEADER_LENGTH = 12;

/** AF_BRIDGE: the entry is a forwarding entry. */
export const BRIDGE_FAMILY = 7;
