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
const LONGEST = 1024;
const SPACE = 0x20;
const LINE_END = 0x0a;
const PLACES = ["/proc/self/ns/net", "/proc/self/ns/mnt"] as const;

/** `readLink` answers where a link leads, nothing where it cannot be told. */
export function greetingOf(version: string, readLink: (path: string) => Uint8Array): Uint8Array {
  const greeting = new Uint8Array(LONGEST);
  let { written: length } = new TextEncoder().encodeInto(version, greeting);
  for (const place of PLACES) {
    const target = readLink(place);
    greeting[length] = SPACE;
    greeting.set(target, length + 1);
    length += 1 + target.length;
  }
  greeting[length] = LINE_END;
  return greeting.subarray(0, length + 1);
}

export function isSameGreeting(greeting: Uint8Array, other: Uint8Array): boolean {
  for (let index = 0; index < greeting.length; index++) if (greeting[index] !== other[index]) return false;
  return greeting.length === other.length;
}
