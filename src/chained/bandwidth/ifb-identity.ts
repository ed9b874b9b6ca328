/**
 * Name and alias of the IFB device that shapes what a container sends.
 *
 * The name is the one that upstream's plugin uses, so that either plugin removes what
 * the other created. It is the same for two interfaces of one container in one
 * network: the second interface gets a different name. The alias identifies the
 * owner, `network/container/interface`; GC reads it.
 */
import type { Attachment } from "../../cni/attachments.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";

export interface NetworkAttachment extends Attachment {
  readonly networkName: string;
}

const PREFIX = "bwp";
const NAME_DIGITS = 12;
/** Two such parts and a name of 15 bytes stay below the kernel's limit of 255 bytes for an alias. */
const LONGEST_PART = 119;

export interface IfbNames {
  /** To try in this order. */
  readonly candidates: readonly [shared: string, own: string];
  readonly alias: string;
}

export function ifbNamesOf(attachment: NetworkAttachment): IfbNames {
  const { networkName, containerId, ifname } = attachment;
  return {
    candidates: [nameFor(networkName + containerId), nameFor(`${networkName}/${containerId}/${ifname}`)],
    alias: `${networkPart(networkName)}/${shortened(containerId)}/${ifname}`,
  };
}

/** Whether the link shapes for the attachment; upstream's device has the name and no alias. */
export function isIfbOf(link: Link, { candidates, alias }: IfbNames): boolean {
  if (link.kind !== "ifb") return false;
  return link.alias === alias || (link.alias === undefined && link.name === candidates[0]);
}

/** Whether the link shapes for an attachment of the network that is not among the valid ones. */
export function isStrayIfb(link: Link, networkName: string, valid: readonly Attachment[]): boolean {
  if (link.kind !== "ifb" || !link.name.startsWith(PREFIX)) return false;
  if (link.alias === undefined || !link.alias.startsWith(`${networkPart(networkName)}/`)) return false;
  return !valid.some((each) => ifbNamesOf({ networkName, ...each }).alias === link.alias);
}

function networkPart(networkName: string): string {
  return shortened(networkName);
}

function nameFor(text: string): string {
  return PREFIX + sha512(text).slice(0, NAME_DIGITS);
}

/** A text that is too long is replaced by its hash, after a character that no name begins with. */
function shortened(text: string): string {
  return text.length <= LONGEST_PART ? text : `~${sha512(text).slice(0, 64)}`;
}

function sha512(text: string): string {
  return new Bun.CryptoHasher("sha512").update(text).digest("hex");
}
