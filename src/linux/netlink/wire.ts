/** The numbers of the netlink framing itself, as in linux/netlink.h. */
export const HEADER_LENGTH = 16;
export const ALIGNMENT = 4;

/** Marks an attribute that contains attributes; the two top bits are not part of its type. */
export const NESTED = 0x8000;
export const ATTRIBUTE_TYPE_MASK = 0x3fff;

export const MESSAGE = { error: 2, done: 3 } as const;

export const FLAG = {
  request: 0x001,
  multipart: 0x002,
  acknowledge: 0x004,
  echo: 0x008,
  dumpInterrupted: 0x010,
  /** The echoed request ends at its header. */
  capped: 0x100,
  /** Attributes with the kernel's error text follow. */
  acknowledgeTlvs: 0x200,
  dump: 0x300,
  replace: 0x100,
  exclusive: 0x200,
  create: 0x400,
  append: 0x800,
} as const;

export function aligned(length: number): number {
  return (length + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}
