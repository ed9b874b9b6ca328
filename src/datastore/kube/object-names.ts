/**
 * Names of objects and values of labels for texts that the API does not accept
 * as they are. Pure.
 *
 * A text that fits is used unchanged. Any other is a readable beginning and a
 * digest of the whole, so that two texts never have one name; the text itself is
 * in the object's spec.
 */
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";

const LONGEST_NAME = 253;
const LONGEST_LABEL = 63;
const DIGEST_LENGTH = 16;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

export function objectName(text: string): string {
  return isObjectName(text) ? text : withDigest(text, LONGEST_NAME);
}

/** Whether an object can have this name. Any other text must not become part of a path: it may lead elsewhere. */
export function isObjectName(text: string): boolean {
  return text.length <= LONGEST_NAME && SUBDOMAIN.test(text);
}

/** A selector that names this value finds the objects of this text, and none of another. */
export function labelValue(text: string): string {
  return text.length <= LONGEST_LABEL && LABEL_VALUE.test(text) ? text : withDigest(text, LONGEST_LABEL);
}

/** `10-0-0-0-26`, `fd80---122`: the addresses of a block as a part of a name. */
export function blockObjectName(cidr: string): string {
  return cidr.replaceAll(/[.:/]/g, "-");
}

/**
 * `node-1-10-0-0-0-26`, `node-1-fd80-0-0-0-0-0-0-0-122`: the block of a node. An IPv6 address has all of its groups, so
 * that the end of the name is the block, whatever the node is called: `a` with `1:1::` is not `a-1` with `1::`.
 */
export function claimObjectName(node: string, { network, length }: Prefix): string {
  if (network.family === 4) return `${node}-${blockObjectName(formatPrefix({ network, length }))}`;
  const groups = Array.from({ length: 8 }, (_, index) => (network.value >> BigInt(16 * (7 - index))) & 0xffffn);
  return [node, ...groups.map((group) => group.toString(16)), length].join("-");
}

function withDigest(text: string, longest: number): string {
  const digest = Bun.SHA256.hash(text, "hex").slice(0, DIGEST_LENGTH);
  const readable = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, longest - DIGEST_LENGTH - 1)
    .replace(/-+$/, "");
  return readable === "" ? digest : `${readable}-${digest}`;
}
