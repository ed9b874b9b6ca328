/**
 * Identifies the owner of a host link, in the alias of the link:
 *
 *   <network>/<container ID>/<interface in the container>
 *
 * None of the three contains a slash. The mark identifies a link that a killed ADD
 * left, whatever is in the datastore. Marks are written and read in this file only:
 * a long name is replaced by its hash and cannot be read back, so attachments are
 * compared by their marks.
 */
export interface LinkMark {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
}

/** An alias has room for 255 bytes, and the interface takes 15 of them at most. */
const LONGEST_NETWORK = 128;
const LONGEST_CONTAINER_ID = 100;

export function formatMark({ network, containerId, ifname }: LinkMark): string {
  return `${startOf(network)}${shortened(containerId, LONGEST_CONTAINER_ID)}/${ifname}`;
}

/** Whether it marks the link of an attachment, whichever. */
export function isMark(alias: string): boolean {
  return alias.split("/").length === 3;
}

export function isMarkOf(network: string, alias: string): boolean {
  return alias.startsWith(startOf(network)) && isMark(alias);
}

/** As it is in the mark: a long one is a hash. `undefined` if the alias is not a mark of the network. */
export function containerOfMark(network: string, alias: string): string | undefined {
  return isMarkOf(network, alias) ? alias.split("/")[1] : undefined;
}

/** Whether it marks an attachment by this interface, whatever its network and container. */
export function isMarkOfInterface(ifname: string, alias: string): boolean {
  return alias.endsWith(`/${ifname}`);
}

/** Whether it marks an attachment of the container by this interface, whatever its network. */
export function isMarkOfContainer({ containerId, ifname }: Omit<LinkMark, "network">, alias: string): boolean {
  const parts = alias.split("/");
  return parts.length === 3 && parts[1] === shortened(containerId, LONGEST_CONTAINER_ID) && parts[2] === ifname;
}

/** Whether the marks include the attachment's; without an interface, that of any interface of the container. */
export function includesMarkOf(
  marks: ReadonlySet<string>,
  { network, containerId, ifname }: Omit<LinkMark, "ifname"> & { readonly ifname: string | undefined },
): boolean {
  if (ifname !== undefined) return marks.has(formatMark({ network, containerId, ifname }));
  const start = formatMark({ network, containerId, ifname: "" });
  return [...marks].some((mark) => mark.startsWith(start));
}

function startOf(network: string): string {
  return `${shortened(network, LONGEST_NETWORK)}/`;
}

/** A text that is too long is replaced by its hash. */
function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : new Bun.CryptoHasher("sha256").update(text).digest("hex");
}
