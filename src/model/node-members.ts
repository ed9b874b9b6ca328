/**
 * Nodes as peers of rules. Their labels have a prefix of their own, as those of namespaces do. Only a selector that requires the
 * mark selects a node: one of everything is about workloads, hosts and network sets, as before. Pure.
 *
 *   has(pcno.vendor.org/node) && pcno.kubernetes.io/os == 'linux'
 */
import { identity } from "../identity.ts";
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { Node } from "./node.ts";

/** Nobody else has labels that begin with it. */
export const OF_NODE = "pcno.";

const MARK = `${OF_NODE}${identity.labelPrefix}node`;

/** The term that selectors of nodes begin with. */
export const IS_NODE = `has(${MARK})`;

/** Whether the selector may select nodes. */
export function concernsNodes(selector: string): boolean {
  return selector.includes(MARK);
}

export function nodeLabels({
  metadata: { name, labels = {} },
}: Pick<Node, "metadata">): Readonly<Record<string, string>> {
  const own = Object.entries(labels).map(([label, value]) => [`${OF_NODE}${label}`, value]);
  return { ...Object.fromEntries(own), [MARK]: name };
}

type ListedAddress = NonNullable<Node["spec"]["addresses"]>[number];

/** The provider translates it: no interface of the node has it. */
export function isExternal({ type }: ListedAddress): boolean {
  return type === "ExternalIP";
}

/** Those that its kubelet or its administrator has reported, each once, also external ones; not those of its tunnels. */
export function nodeAddresses({ spec: { addresses = [], bgp = {} } }: Pick<Node, "spec">): readonly Address[] {
  const texts = [...addresses.map(({ address }) => address), bgp.ipv4Address, bgp.ipv6Address];
  const read = texts.flatMap((text = "") => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
  return [...new Map(read.map((address) => [formatAddress(address), address])).values()];
}
