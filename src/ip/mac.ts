/** Ethernet addresses: `02:42:ac:11:00:02`, six bytes. */
const MAC = /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i;

/** Reads six hex pairs joined by colons or dashes. */
export function parseMac(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!MAC.test(text)) return undefined;
  return Uint8Array.from(text.split(/[:-]/), (pair) => Number.parseInt(pair, 16));
}

/** Lower case, joined by colons, as the kernel's tools print it. */
export function formatMac(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}
