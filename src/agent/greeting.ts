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
const PLACES = ["/proc/self/ns/net", "/proc/self/ns/mnt"] as const;

/** `readLink` answers where a link leads, "" where it cannot be told. */
export function greetingOf(version: string, readLink: (path: string) => string): string {
  return `${version} ${PLACES.map(readLink).join(" ")}\n`;
}
