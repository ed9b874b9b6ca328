/** What each side tells the other about itself (RFC 9113, section 6.5): numbers by their names, which are numbers, too. */
import { numberAt } from "./frames.ts";

export const PUSH = 2;
export const MOST_STREAMS = 3;
export const WINDOW = 4;

export type Setting = readonly [name: number, value: number];

const SETTING_BYTES = 6;

export function encodeSettings(...settings: readonly Setting[]): Uint8Array {
  const bytes = new Uint8Array(settings.length * SETTING_BYTES);
  const view = new DataView(bytes.buffer);
  for (const [place, [name, value]] of settings.entries()) {
    view.setUint16(place * SETTING_BYTES, name);
    view.setUint32(place * SETTING_BYTES + 2, value);
  }
  return bytes;
}

export function decodeSettings(payload: Uint8Array): readonly Setting[] {
  const count = Math.floor(payload.length / SETTING_BYTES);
  return Array.from({ length: count }, (_, place) => {
    const at = place * SETTING_BYTES;
    return [numberAt(payload, at) >>> 16, numberAt(payload, at + 2)] as const;
  });
}
