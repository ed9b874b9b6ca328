/** MAC addresses: `02:42:ac:11:00:02`, six bytes. */
const MAC = /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i;

/** Reads six hex pairs joined by colons or dashes. */
export function parseMac(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!MAC.test(text)) return undefined;
  return Uint8Array.from(text.split(/[:-]/), (pair) => Number.parseInt(pair, 16));
}

/** Whether it is the address of one interface, not of a group. */
export function isUnicastMac(mac: Uint8Array): boolean {
  return ((mac[0] ?? 1) & 1) === 0;
}

const HEX = "0123456789abcdef";

/**
 * Lower case, joined by colons, as `ip` prints it. With a loop: the first use of
 * `Array.from` costs a new process more than a third of a millisecond.
 */
export function formatMac(bytes: Uint8Array): string {
  let text = "";
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    text += `${index === 0 ? "" : ":"}${HEX.charAt(byte >> 4)}${HEX.charAt(byte & 15)}`;
  }
  return text;
}
