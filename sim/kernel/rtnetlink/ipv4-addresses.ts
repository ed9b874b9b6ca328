/** IPv4 addresses of links, and the routes that the kernel makes for them. */
import type { Address } from "../../../src/ip/address.ts";
import { isSameAddress } from "../../../src/ip/address.ts";
import { isSamePrefix, lastAddress, type Prefix, prefixAround, singlePrefix } from "../../../src/ip/prefix.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { type Cause, Refusal } from "../message.ts";
import type { ModelAddress, ModelLink, RouteKind } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { ADDRESS_FLAG, KERNEL_PROTOCOL, SCOPE, TABLE } from "../wire.ts";
import { announceAddress } from "./address-message.ts";
import { kindOfAddress } from "./lookup.ts";
import { flushNeighbours } from "./neighbours.ts";
import { deleteFirst, flushRoutes, insertRoute, isSame } from "./route-table.ts";

const SHORTEST_WITHOUT_BROADCAST = 31;

export function addIpv4(
  namespace: Namespace,
  asked: Omit<ModelAddress, "flags">,
  { flags, cause }: { readonly flags: number; readonly cause?: Cause },
): void {
  const ofLink = addressesOf(namespace, asked.linkIndex);
  const sameNetwork = ofLink.filter((each) => isSamePrefix(networkOf(each), networkOf(asked)));
  const existing = sameNetwork.find((each) => isSameAddress(each.address, asked.address));
  if (existing !== undefined) {
    if ((flags & FLAG.exclusive) !== 0 || (flags & FLAG.replace) === 0)
      throw new Refusal("EEXIST", "Address already assigned");
    announceAddress(namespace, existing, "new", cause);
    return;
  }
  if (sameNetwork.some((each) => each.scope !== asked.scope)) throw new Refusal("EINVAL", "Invalid scope value");
  const secondary = sameNetwork.length > 0 ? ADDRESS_FLAG.secondary : 0;
  const address: ModelAddress = { ...asked, flags: ADDRESS_FLAG.permanent | secondary };
  namespace.addresses.push(address);
  announceAddress(namespace, address, "new", cause);
  addRoutesOf(namespace, address);
}

/** Also when the link goes up: only the route to the address itself exists while it is down. */
export function addRoutesOf(namespace: Namespace, address: ModelAddress): void {
  const link = namespace.links.get(address.linkIndex);
  if (link === undefined) return;
  const source = primaryOf(namespace, address).address;
  const add = (kind: RouteKind, destination: Prefix) => addOwnRoute(namespace, link, { kind, destination, source });
  add("local", singlePrefix(address.address));
  if (!link.isUp || !hasNetworkRoute(address)) return;
  add(link.name === "lo" ? "local" : "unicast", networkOf(address));
  if (address.length < SHORTEST_WITHOUT_BROADCAST) add("broadcast", broadcastOf(address));
}

interface OwnRoute {
  readonly kind: RouteKind;
  readonly destination: Prefix;
  readonly source: Address;
}

function addOwnRoute(namespace: Namespace, link: ModelLink, { kind, destination, source }: OwnRoute): void {
  const table = kind === "unicast" ? TABLE.main : TABLE.local;
  if (table === TABLE.local) namespace.hasLocalIpv4Table = true;
  // The source of packets must be a local address already.
  const isToSource = kind === "local" && isSameAddress(destination.network, source);
  if (!isToSource && kindOfAddress(namespace, source) !== "local") return;
  try {
    insertRoute(
      namespace,
      {
        destination,
        kind,
        table,
        priority: 0,
        protocol: KERNEL_PROTOCOL,
        scope: kind === "local" ? SCOPE.host : SCOPE.link,
        linkIndex: link.index,
        isOnLink: false,
        preferredSource: source,
      },
      { flags: FLAG.create | FLAG.append },
    );
  } catch (failure) {
    // It exists already.
    if (!(failure instanceof Refusal)) throw failure;
  }
}

function deleteOwnRoute(namespace: Namespace, link: ModelLink, { kind, destination, source }: OwnRoute): void {
  deleteFirst(
    namespace,
    (route) =>
      route.kind === kind &&
      route.protocol === KERNEL_PROTOCOL &&
      route.linkIndex === link.index &&
      isSame(route.preferredSource, source) &&
      isSamePrefix(route.destination, destination),
  );
}

/** Without `promote_secondaries`, the further addresses of its network go with the first one. */
export function deleteIpv4(namespace: Namespace, address: ModelAddress, cause?: Cause): void {
  const isPrimary = (address.flags & ADDRESS_FLAG.secondary) === 0;
  if (isPrimary) {
    const network = networkOf(address);
    for (const each of addressesOf(namespace, address.linkIndex)) {
      if (each !== address && isSamePrefix(networkOf(each), network)) removeIpv4(namespace, each, address, cause);
    }
  }
  removeIpv4(namespace, address, address, cause);
}

function removeIpv4(namespace: Namespace, address: ModelAddress, primary: ModelAddress, cause?: Cause): void {
  const { linkIndex } = address;
  namespace.addresses.splice(namespace.addresses.indexOf(address), 1);
  announceAddress(namespace, address, "delete", cause);
  const link = namespace.links.get(linkIndex);
  if (link === undefined) return;
  deleteRoutesOf(namespace, link, { address, primary });
  if (addressesOf(namespace, linkIndex).length > 0) return;
  // The last address of a link: IPv4 is over there.
  flushRoutes(namespace, 4, (route) => route.linkIndex === linkIndex);
  flushNeighbours(namespace, 4, linkIndex);
}

function deleteRoutesOf(
  namespace: Namespace,
  link: ModelLink,
  { address, primary }: { readonly address: ModelAddress; readonly primary: ModelAddress },
): void {
  const source = primary.address;
  const rest = addressesOf(namespace, link.index);
  const isPrimary = (address.flags & ADDRESS_FLAG.secondary) === 0;
  if (isPrimary && hasNetworkRoute(address)) {
    const kind = link.name === "lo" ? "local" : "unicast";
    deleteOwnRoute(namespace, link, { kind, destination: networkOf(address), source });
    const broadcast = broadcastOf(address);
    const isShared = rest.some(
      (each) => isSameAddress(each.address, source) && isSamePrefix(broadcastOf(each), broadcast),
    );
    if (address.length < SHORTEST_WITHOUT_BROADCAST && !isShared)
      deleteOwnRoute(namespace, link, { kind: "broadcast", destination: broadcast, source });
  }
  if (rest.some((each) => isSameAddress(each.address, address.address))) return;
  deleteOwnRoute(namespace, link, { kind: "local", destination: singlePrefix(address.address), source });
  if (kindOfAddress(namespace, address.address) === "local") return;
  // Routes that would use the address as their source have lost it.
  const isStray = (route: { readonly table: number; readonly preferredSource?: Address }) =>
    route.table === TABLE.main && isSame(route.preferredSource, address.address);
  while (deleteFirst(namespace, (route) => route.destination.network.family === 4 && isStray(route)));
}

/** Not of a single address. */
function hasNetworkRoute({ address, length }: ModelAddress): boolean {
  const { network } = prefixAround(address, length);
  return network.value >> 24n !== 0n && (network.value !== address.value || length < 32);
}

function primaryOf(namespace: Namespace, address: ModelAddress): ModelAddress {
  if ((address.flags & ADDRESS_FLAG.secondary) === 0) return address;
  const first = addressesOf(namespace, address.linkIndex).find(
    (each) => (each.flags & ADDRESS_FLAG.secondary) === 0 && isSamePrefix(networkOf(each), networkOf(address)),
  );
  return first ?? address;
}

export function addressesOf(namespace: Namespace, linkIndex: number): readonly ModelAddress[] {
  return namespace.addresses.filter((each) => each.linkIndex === linkIndex && each.address.family === 4);
}

function networkOf({ address, length }: Pick<ModelAddress, "address" | "length">): Prefix {
  return prefixAround(address, length);
}

function broadcastOf(address: ModelAddress): Prefix {
  return singlePrefix(lastAddress(networkOf(address)));
}
