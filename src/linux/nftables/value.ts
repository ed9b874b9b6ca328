/** Values in the format of the kernel's registers and keys. */
const encoder = new TextEncoder();
const IFNAME_LENGTH = 16;

/** The key of a concatenation: addresses, ports and protocols in sequence, each padded to whole registers. */
export function concatenate(...fields: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const field of fields) length += padded(field.length);
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const field of fields) {
    bytes.set(field, offset);
    offset += padded(field.length);
  }
  return bytes;
}

export function protocolValue(protocol: number): Uint8Array {
  return Uint8Array.of(protocol);
}

/** Network byte order, as in the packet. */
export function portValue(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 255);
}

/** Host byte order: marks, states, interface indexes. */
export function hostNumber(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** A whole interface name, padded with zero bytes. */
export function interfaceValue(name: string): Uint8Array {
  const bytes = new Uint8Array(IFNAME_LENGTH);
  encoder.encodeInto(name, bytes.subarray(0, IFNAME_LENGTH - 1));
  return bytes;
}

/** The beginning of interface names: only its own bytes are compared. */
export function interfacePrefixValue(prefix: string): Uint8Array {
  return encoder.encode(prefix);
}

function padded(length: number): number {
  return (length + 3) & ~3;
}
