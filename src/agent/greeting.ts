/**
 * How the plugin's process and the node agent find out that a call means the
 * same to both. The agent says who it is; who would say the same of itself may
 * hand its call over. Everybody else does its work itself:
 *
 *   - another release, while an upgrade is under way
 *   - another network namespace: the same interface is another interface
 *   - another mount namespace: the same path is another file, and a process
 *     number, which is read in /proc, another process
 */
import { firstBytes, putText } from "../bytes.ts";

const LONGEST = 1024;
const SPACE = 0x20;
const LINE_END = 0x0a;
const PLACES = ["/proc/self/ns/net", "/proc/self/ns/mnt"] as const;

/** `putLink` puts where a link leads, and answers how many bytes that took: none where it cannot be told. */
export function greetingOf(
  version: string,
  putLink: (bytes: Uint8Array, at: number, path: string) => number,
): Uint8Array {
  const greeting = new Uint8Array(LONGEST);
  let length = putText(greeting, 0, version) ?? 0;
  for (const place of PLACES) {
    greeting[length] = SPACE;
    length += 1 + putLink(greeting, length + 1, place);
  }
  greeting[length] = LINE_END;
  return firstBytes(greeting, length + 1);
}

/** Whether the first `count` bytes are all of the greeting, and nothing else. */
export function isGreeting(bytes: Uint8Array, count: number, greeting: Uint8Array): boolean {
  if (count !== greeting.length) return false;
  for (let index = 0; index < count; index++) if (bytes[index] !== greeting[index]) return false;
  return true;
}
