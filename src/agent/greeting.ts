/**
 * How the plugin's process and the node agent find out that a call means the
 * same to both. The agent says who it is; who would say the same of itself may
 * hand its call over. Everybody else does its work itself:
 *
 *   - another release, while an upgrade is under way
 *   - another network, mount, process or user namespace, or another root: there
 *     the same path is another file, and the same interface another interface
 */
const PLACES = ["ns/net", "ns/mnt", "ns/pid", "ns/user", "root"] as const;

/** `readLink` answers where a link leads, "" where it cannot be told. */
export function greetingOf(version: string, readLink: (path: string) => string): string {
  return `${version} ${PLACES.map((place) => readLink(`/proc/self/${place}`)).join(" ")}\n`;
}
