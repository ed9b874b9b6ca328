/**
 * Files by which NetworkManager and systemd-networkd leave our links alone: otherwise they may configure new links, or
 * remove addresses and routes that they did not set. Pure.
 */
import { identity } from "../../identity.ts";
import { type InstalledEntry, readableEntry } from "./layout.ts";

const { product, title, interfacePrefix, vxlanDevice, vxlanDeviceIpv6 } = identity;
const LINKS = [`${interfacePrefix}*`, vxlanDevice, vxlanDeviceIpv6, "tunl0"];

const NETWORK_MANAGER = "/etc/NetworkManager/conf.d";
const NETWORKD = "/etc/systemd/network";

export const UNMANAGED_LINKS_DIRECTORIES = [NETWORK_MANAGER, NETWORKD] as const;

/** `existing`: those of `UNMANAGED_LINKS_DIRECTORIES` that the host has. */
export function unmanagedLinkEntries(existing: readonly string[]): readonly InstalledEntry[] {
  const entries = [
    readableEntry(`${NETWORK_MANAGER}/${product}.conf`, networkManagerText()),
    readableEntry(`${NETWORKD}/10-${product}.network`, networkdText()),
  ];
  return entries.filter(({ path }) => existing.some((directory) => path.startsWith(`${directory}/`)));
}

export function isOfNetworkManager(path: string): boolean {
  return path.startsWith(`${NETWORK_MANAGER}/`);
}

/** "+=": other files may name further links. */
function networkManagerText(): string {
  return `# Written by ${title}: its links are not NetworkManager's.
[keyfile]
unmanaged-devices+=${LINKS.map((name) => `interface-name:${name}`).join(";")}
`;
}

function networkdText(): string {
  return `# Written by ${title}: its links are not systemd-networkd's.
[Match]
Name=${LINKS.join(" ")}

[Link]
Unmanaged=yes
`;
}
