/** Where a namespace of the kernel model sends a packet: by its rules, then by the longest prefix of a table. Pure. */
import { type Address, isSameAddress } from "../../../src/ip/address.ts";
import { prefixContains } from "../../../src/ip/prefix.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { ModelLink, ModelRoute, NetworkNamespace } from "../../kernel/model.ts";

/** `only`: routes through other links do not count. */
export function lookUpRoute(
  namespace: NetworkNamespace,
  destination: Address,
  source?: Address,
  only?: number,
): Readonly<ModelRoute> | undefined {
  const { family } = destination;
  const rules = namespace.rules
    .filter((rule) => rule.family === family)
    .filter((rule) => rule.source === undefined || (source !== undefined && prefixContains(rule.source, source)))
    .toSorted((left, right) => left.priority - right.priority);
  for (const { table } of rules) {
    const route = bestIn(namespace, { table, only }, destination);
    if (route !== undefined && route.kind !== "throw") return route;
  }
  return undefined;
}

/** The longest prefix; among those the lowest priority number; among those the one that was there first. */
function bestIn(
  namespace: NetworkNamespace,
  { table, only }: { readonly table: number; readonly only: number | undefined },
  to: Address,
): Readonly<ModelRoute> | undefined {
  let best: Readonly<ModelRoute> | undefined;
  for (const route of namespace.routes) {
    if (route.table !== table || !prefixContains(route.destination, to)) continue;
    if (only !== undefined && route.linkIndex !== only) continue;
    const isBetter =
      best === undefined ||
      route.destination.length > best.destination.length ||
      (route.destination.length === best.destination.length && route.priority < best.priority);
    if (isBetter) best = route;
  }
  return best;
}

/** The source address that the kernel gives a packet of the namespace's own. */
export function sourceFor(namespace: NetworkNamespace, route: Readonly<ModelRoute>): Address | undefined {
  const { family } = route.destination.network;
  if (route.preferredSource !== undefined) return route.preferredSource;
  const own = namespace.addresses.filter(
    ({ address, linkIndex }) => address.family === family && linkIndex !== LOOPBACK && !isLinkLocal(address),
  );
  return (own.find(({ linkIndex }) => linkIndex === route.linkIndex) ?? own[0])?.address;
}

export function hasAddress(namespace: NetworkNamespace, address: Address): boolean {
  return namespace.addresses.some((own) => isSameAddress(own.address, address));
}

export function linkOf(namespace: NetworkNamespace, index: number | undefined): Readonly<ModelLink> | undefined {
  return index === undefined ? undefined : namespace.links.get(index);
}

/** The settings of the interface that a packet comes in by. */
export function whyNotForwarded(
  namespace: NetworkNamespace,
  iif: Readonly<ModelLink>,
  { source, destination }: Packet,
): string | undefined {
  const setting = (path: string) => Number(namespace.sysctls.get(path) ?? "0");
  if (destination.family === 6)
    return setting("net/ipv6/conf/all/forwarding") === 0 ? "it does not forward IPv6" : undefined;
  if (setting(`net/ipv4/conf/${iif.name}/forwarding`) === 0) return `it does not forward what "${iif.name}" receives`;
  const filter = Math.max(...["all", iif.name].map((name) => setting(`net/ipv4/conf/${name}/rp_filter`)));
  const isBackThere = lookUpRoute(namespace, source)?.linkIndex === iif.index;
  return filter === STRICT && !isBackThere ? `the reverse path filter of "${iif.name}" drops it` : undefined;
}

const STRICT = 1;

const LOOPBACK = 1;
const LINK_LOCAL_6 = 0xfe80n;

function isLinkLocal({ family, value }: Address): boolean {
  return family === 6 && BigInt(value) >> 112n === LINK_LOCAL_6;
}
