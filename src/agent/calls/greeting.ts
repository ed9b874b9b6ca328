/**
 * How a plugin's process finds out whether the node agent would give a call the
 * same meaning. The agent sends its version and namespaces; a process whose own
 * are equal may hand its call over. A process does the call itself if it has
 *
 *   - another release, for example during an upgrade
 *   - another network namespace: an interface name means another interface
 *   - another mount namespace: a path means another file, and a process ID,
 *     which is looked up in /proc, another process
 */
import { firstBytes, putText } from "../../bytes.ts";

const LONGEST = 1024;
const SPACE = 0x20;
const LINE_END = 0x0a;
const NAMESPACE_LINKS = ["/proc/self/ns/net", "/proc/self/ns/mnt"] as const;

/** `putLink` writes the target of a symbolic link and returns its length in bytes; 0 if the link cannot be read. */
export function greetingOf(
  version: string,
  putLink: (bytes: Uint8Array, at: number, path: string) => number,
): Uint8Array {
  const greeting = new Uint8Array(LONGEST);
  let length = putText(greeting, 0, version) ?? 0;
  for (const link of NAMESPACE_LINKS) {
    greeting[length] = SPACE;
    length += 1 + putLink(greeting, length + 1, link);
  }
  greeting[length] = LINE_END;
  return firstBytes(greeting, length + 1);
}

/** Whether the first `count` bytes are exactly the greeting. */
export function isGreeting(bytes: Uint8Array, count: number, greeting: Uint8Array): boolean {
  if (count !== greeting.length) return false;
  for (let index = 0; index < count; index++) if (bytes[index] !== greeting[index]) return false;
  return true;
}
