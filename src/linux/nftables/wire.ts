/** The numbers of nf_tables messages, as in linux/netfilter/nf_tables.h. Numbers are in network byte order. */
export const SUBSYSTEM = 10 << 8;

export const BATCH = { begin: 16, end: 17, generation: 1 } as const;

export const MESSAGE = {
  newTable: SUBSYSTEM | 0,
  getTable: SUBSYSTEM | 1,
  deleteTable: SUBSYSTEM | 2,
  newChain: SUBSYSTEM | 3,
  getChain: SUBSYSTEM | 4,
  deleteChain: SUBSYSTEM | 5,
  newRule: SUBSYSTEM | 6,
  getRule: SUBSYSTEM | 7,
  deleteRule: SUBSYSTEM | 8,
  newSet: SUBSYSTEM | 9,
  getSet: SUBSYSTEM | 10,
  deleteSet: SUBSYSTEM | 11,
  newElement: SUBSYSTEM | 12,
  getElement: SUBSYSTEM | 13,
  deleteElement: SUBSYSTEM | 14,
  newGeneration: SUBSYSTEM | 15,
  getGeneration: SUBSYSTEM | 16,
  trace: SUBSYSTEM | 17,
  destroyElement: SUBSYSTEM | 30,
} as const;

/** `struct nfgenmsg`: family, version, resource. */
export const HEADER_LENGTH = 4;

export const FAMILY = { inet: 1, ip: 2, netdev: 5, bridge: 7, ip6: 10 } as const;

export const TABLE = { name: 1, flags: 2, handle: 4, userdata: 6 } as const;
/** It is deleted when the socket that created it is closed, and nobody else can change it. */
export const TABLE_OWNED = 2;
export const CHAIN = { table: 1, handle: 2, name: 3, hook: 4, policy: 5, type: 7, userdata: 12 } as const;
export const HOOK = { number: 1, priority: 2 } as const;
export const RULE = { table: 1, chain: 2, handle: 3, expressions: 4, userdata: 7 } as const;
export const SET = {
  table: 1,
  name: 2,
  flags: 3,
  keyType: 4,
  keyLength: 5,
  dataType: 6,
  dataLength: 7,
  description: 9,
  id: 10,
  timeout: 11,
  userdata: 13,
  handle: 16,
} as const;
export const SET_DESCRIPTION = { size: 1, concatenation: 2, fieldLength: 1 } as const;
export const SET_FLAG = {
  anonymous: 1,
  constant: 2,
  interval: 4,
  map: 8,
  timeout: 0x10,
  dynamic: 0x20,
  concatenation: 0x80,
} as const;
export const ELEMENT_LIST = { table: 1, set: 2, elements: 3, setId: 4 } as const;
export const ELEMENT = { key: 1, data: 2, flags: 3, userdata: 6, keyEnd: 10 } as const;
export const ELEMENT_FLAG = { intervalEnd: 1 } as const;
export const DATA = { value: 1, verdict: 2 } as const;
export const VERDICT = { code: 1, chain: 2 } as const;
export const LIST_ENTRY = 1;

export const VERDICT_TYPE = 0xffffff00;

export const HOOK_NUMBER = { prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 } as const;
export const POLICY = { drop: 0, accept: 1 } as const;
