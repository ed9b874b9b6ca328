/** The addresses in the record of a node: `spec.bgp` has those that other nodes reach it at, `spec.addresses` all. Pure. */
import { type Address, type Family, parseAddress } from "../ip/address.ts";
import { formatInterfaceAddress, parseInterfaceAddress } from "../ip/prefix.ts";
import type { HostAddress, HostLink } from "../linux/rtnetlink/host-addresses.ts";
import { parseAddressDetection } from "../model/address-detection.ts";
import type { Node } from "../model/node.ts";
import type { NodeAgentSettings } from "../model/node-agent-configuration.ts";
import { isExternal } from "../model/node-members.ts";
import { chooseNodeAddress, type HostFacts, isOfHost } from "./node-address.ts";

export type DetectionSettings = Pick<NodeAgentSettings, "ipv4AddressDetection" | "ipv6AddressDetection">;

const FAMILIES = [4, 6] as const;

export function detectionOf(family: Family, settings: DetectionSettings): string {
  return family === 4 ? settings.ipv4AddressDetection : settings.ipv6AddressDetection;
}

export interface NodeAddresses {
  readonly bgp: Node["spec"]["bgp"];
  /** Those in `bgp` that were found, and not only recorded. */
  readonly found: readonly string[];
  /** The links that have them. */
  readonly links: readonly HostLink[];
  /** For people: which method found nothing. The recorded address stays then. */
  readonly problems: readonly string[];
}

/** `facts`: of each family, because each has its own method. */
export function nodeAddresses(
  before: Node["spec"]["bgp"],
  settings: DetectionSettings,
  facts: (family: Family) => HostFacts,
): NodeAddresses {
  const found: string[] = [];
  const links: HostLink[] = [];
  const problems: string[] = [];
  let bgp: NonNullable<Node["spec"]["bgp"]> = { ...before };
  for (const family of FAMILIES) {
    const field = FIELD[family];
    const recorded = recordedAddress(bgp, family);
    const method = detectionOf(family, settings);
    const choice = chooseNodeAddress(family, parseAddressDetection(method), facts(family), recorded);
    if (choice.kind === "found") {
      const text = formatInterfaceAddress(choice.address);
      found.push(text);
      bgp = { ...bgp, [field]: text };
      if (choice.link !== undefined) links.push(choice.link);
    } else if (choice.kind === "not wanted") {
      const { [field]: _, ...others } = bgp;
      bgp = others;
    } else if (method !== USUAL || bgp[field] !== undefined) {
      // Most hosts have no IPv6: that the usual method finds nothing matters only if there was an address.
      problems.push(problemOf(family, method, { reason: choice.reason, recorded: bgp[field] }));
    }
  }
  return { bgp: Object.keys(bgp).length === 0 ? undefined : bgp, found, links, problems };
}

const USUAL = "first-found";
const FIELD = { 4: "ipv4Address", 6: "ipv6Address" } as const;

/** With the orchestrator's API as the datastore, the addresses that the kubelet reports are part of the record. */
export function kubeletAddresses({ addresses = [] }: Node["spec"]): readonly Address[] {
  return addresses.flatMap(({ address, type }) => (type === "InternalIP" ? (parseAddress(address) ?? []) : []));
}

/** Those that other nodes reach it at. */
export function recordedAddresses(bgp: Node["spec"]["bgp"]): readonly Address[] {
  return FAMILIES.flatMap((family) => recordedAddress(bgp, family) ?? []);
}

function recordedAddress(bgp: Node["spec"]["bgp"], family: Family): Address | undefined {
  const text = bgp?.[FIELD[family]];
  return text === undefined ? undefined : (parseInterfaceAddress(text)?.address ?? parseAddress(text));
}

function problemOf(
  family: Family,
  method: string,
  { reason, recorded }: { readonly reason: string; readonly recorded: string | undefined },
): string {
  const state = recorded === undefined ? "it has none" : `${recorded} stays recorded`;
  const fix = `correct ipv${family}AddressDetection of NodeAgentConfiguration, or use "none"`;
  return `Cannot find the IPv${family} address of this node by "${method}": ${reason}; ${state}; ${fix}`;
}

/** Replaces only what names an address of the node itself; other fields are kept. `all`: the addresses of the host. */
export function withNodeAddresses(
  spec: Node["spec"],
  { bgp, found }: Pick<NodeAddresses, "bgp" | "found">,
  all: readonly HostAddress[],
): Node["spec"] {
  const { bgp: _, addresses = [], ...others } = spec;
  const external = addresses.filter(isExternal);
  return { ...others, ...(bgp === undefined ? {} : { bgp }), addresses: [...listed(found, all), ...external] };
}

/** Those of the links with a default route, or of all links to other hosts if there is none; before them the ones that were found. */
function listed(found: readonly string[], all: readonly HostAddress[]): NonNullable<Node["spec"]["addresses"]> {
  const ofHost = all.filter(isOfHost);
  const ofUplinks = ofHost.filter(({ link }) => link.defaultRoutes.length > 0);
  const usual = (ofUplinks.length === 0 ? ofHost : ofUplinks).map(formatInterfaceAddress);
  return [...new Set([...found, ...usual])].map((address) => ({ address, type: "InternalIP" }));
}
