/**
 * The names of the device that shapes what a container sends.
 *
 * Its name is the one upstream's plugin gives, so that either removes what the
 * other made. That name does not tell two interfaces of one container in one
 * network apart: the second one gets a name of its own. Whose device it is, the
 * alias says: `network/container/interface`, which GC reads.
 */
import type { Attachment } from "../../cni/attachments.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";

export interface NetworkAttachment extends Attachment {
  readonly networkName: string;
}

const PREFIX = "bwp";
const NAME_DIGITS = 12;
/** Together with a name of 15 bytes below the kernel's 255 for an alias. */
const LONGEST_PART = 119;

export interface IfbNames {
  /** To be tried in this order. */
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

/** Whether the link shapes for the attachment; upstream's bears its name and no alias. */
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

/** A text that is too long is told by its hash, behind a sign that no name begins with. */
function shortened(text: string): string {
  return text.length <= LONGEST_PART ? text : `~${sha512(text).slice(0, 64)}`;
}

function sha512(text: string): string {
  return new Bun.CryptoHasher("sha512").update(text).digest("hex");
}
