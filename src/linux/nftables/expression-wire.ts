/** The attributes of each instruction, as in linux/netfilter/nf_tables.h. */
export const EXPRESSION = {
  name: 1,
  data: 2,
  meta: { to: 1, key: 2, from: 3 },
  ct: { to: 1, key: 2, from: 4 },
  payload: { to: 1, base: 2, offset: 3, length: 4 },
  compare: { from: 1, operator: 2, value: 3 },
  range: { from: 1, operator: 2, first: 3, last: 4 },
  bitwise: { from: 1, to: 2, length: 3, mask: 4, flip: 5, operation: 6 },
  lookup: { set: 1, from: 2, to: 3, setId: 4, flags: 5 },
  dynset: { set: 1, setId: 2, operation: 3, from: 4 },
  immediate: { to: 1, data: 2 },
  nat: { type: 1, family: 2, address: 3, port: 5 },
  counter: { bytes: 1, packets: 2 },
  fib: { to: 1, result: 2, flags: 3 },
  log: { group: 1, prefix: 2, level: 5 },
  /** A target of iptables. */
  target: { name: 1 },
  reject: { type: 1, code: 2 },
  limit: { rate: 1, unit: 2, burst: 3, type: 4, flags: 5 },
} as const;

/** Of a `dynset`. */
export const REMOVE_ELEMENT = 2;
