/**
 * The types of keys and values. The kernel uses only their lengths; the type numbers
 * and byte orders are for `nft`, which needs them to print elements.
 */

const HOST_ORDER = 1;
const NETWORK_ORDER = 2;

const TYPES = {
  ipv4_addr: { id: 7, length: 4, order: NETWORK_ORDER },
  ipv6_addr: { id: 8, length: 16, order: NETWORK_ORDER },
  ether_addr: { id: 9, length: 6, order: NETWORK_ORDER },
  inet_proto: { id: 12, length: 1, order: HOST_ORDER },
  inet_service: { id: 13, length: 2, order: NETWORK_ORDER },
  icmp_type: { id: 14, length: 1, order: HOST_ORDER },
  mark: { id: 19, length: 4, order: HOST_ORDER },
  iface_index: { id: 20, length: 4, order: HOST_ORDER },
  ct_state: { id: 26, length: 4, order: HOST_ORDER },
  icmpv6_type: { id: 29, length: 1, order: HOST_ORDER },
  ifname: { id: 41, length: 16, order: HOST_ORDER },
} as const;

export type DataType = keyof typeof TYPES;

const BITS_PER_TYPE = 6;

/** The number of a concatenation of these types. */
export function typeNumber(fields: readonly DataType[]): number {
  return fields.reduce((number, field) => (number << BITS_PER_TYPE) | TYPES[field].id, 0);
}

/** The types of such a number; `undefined` if one of them is not in the table. */
export function typesOfNumber(number: number): readonly DataType[] | undefined {
  const fields: DataType[] = [];
  for (let rest = number; rest > 0; rest >>>= BITS_PER_TYPE) {
    const id = rest & ((1 << BITS_PER_TYPE) - 1);
    const field = typeNames().find((name) => TYPES[name].id === id);
    if (field === undefined) return undefined;
    fields.unshift(field);
  }
  return fields;
}

function typeNames(): DataType[] {
  return Object.keys(TYPES).filter((name): name is DataType => name in TYPES);
}

export function fieldLength(field: DataType): number {
  return TYPES[field].length;
}

/** Each field of a concatenation is padded to registers of four bytes; a single field is not. */
export function typeLength(fields: readonly DataType[]): number {
  const [only, ...more] = fields;
  if (only !== undefined && more.length === 0) return TYPES[only].length;
  return fields.reduce((sum, field) => sum + ((TYPES[field].length + 3) & ~3), 0);
}

/** How `nft` reads the bytes of a single field; a concatenation has no byte order. */
export function byteOrder(fields: readonly DataType[]): number {
  const [only, ...more] = fields;
  return only === undefined || more.length > 0 ? 0 : TYPES[only].order;
}
