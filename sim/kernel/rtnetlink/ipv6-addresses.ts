/** IPv6 addresses of links, and the routes that the kernel makes for them. */
import type { Address } from "../../../src/ip/address.ts";
import { isSameAddress } from "../../../src/ip/address.ts";
import { isSamePrefix, type Prefix, prefixAround, singlePrefix } from "../../../src/ip/prefix.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { type Cause, Refusal } from "../message.ts";
import type { ModelAddress, ModelLink, RouteKind } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { ADDRESS_FLAG, KERNEL_PROTOCOL, SCOPE, TABLE } from "../wire.ts";
import { announceAddress } from "./address-message.ts";
import { isLinkLocal } from "./next-hop.ts";
import { deleteFirst, insertRoute, isSame } from "./route-table.ts";

const KERNEL_PRIORITY = 256;
const MULTICAST: Prefix = { network: { family: 6, value: 0xffn << 120n }, length: 8 };
const LINK_LOCAL = 0xfe80n << 112n;
const DETECTION_MILLISECONDS = 1000;

export function addIpv6(
  namespace: Namespace,
  asked: Omit<ModelAddress, "scope">,
  { flags, cause }: { readonly flags: number; readonly cause?: Cause },
): void {
  const link = namespace.links.get(asked.linkIndex);
  if (link === undefined) throw new Refusal("ENODEV");
  const existing = ipv6Of(namespace, link.index).find((each) => isSameAddress(each.address, asked.address));
  if (existing !== undefined) {
    if ((flags & FLAG.exclusive) !== 0 || (flags & FLAG.replace) === 0)
      throw new Refusal("EEXIST", "address already assigned");
    announceAddress(namespace, existing, "new", cause);
    return;
  }
  if (isDisabled(namespace, link)) throw new Refusal("EACCES", "IPv6 is disabled on this device");
  if (asked.address.value === 0n || asked.address.value >> 120n === 0xffn)
    throw new Refusal("EADDRNOTAVAIL", "Cannot assign requested address");
  if (asked.address.value === 1n && link.name !== "lo") throw new Refusal("EADDRNOTAVAIL");
  prepareMulticast(namespace, link);
  const isDetecting = (asked.flags & ADDRESS_FLAG.noDuplicateDetection) === 0;
  const address: ModelAddress = {
    ...asked,
    scope: scopeOf(asked.address),
    flags: asked.flags | ADDRESS_FLAG.permanent | (isDetecting ? ADDRESS_FLAG.tentative : 0),
  };
  namespace.addresses.push(address);
  addPrefixRoute(namespace, link, networkOf(address));
  if (isDetecting) announceAddress(namespace, address, "new", cause);
  detectDuplicates(namespace, link, address);
}

/** The link is up and has a carrier: it gets an address of its own. */
export function configureIpv6(namespace: Namespace, link: ModelLink): void {
  if (isDisabled(namespace, link) || link.kind === "ipip") return;
  if (link.name === "lo") addAutomatic(namespace, link, { address: { family: 6, value: 1n }, length: 128 });
  else {
    prepareMulticast(namespace, link);
    addAutomatic(namespace, link, { address: linkLocalOf(link.mac), length: 64 });
  }
  for (const address of ipv6Of(namespace, link.index)) {
    if ((address.flags & ADDRESS_FLAG.tentative) !== 0) detectDuplicates(namespace, link, address);
  }
}

/** Routes to the networks of the addresses it had while it was down. */
export function restorePrefixRoutes(namespace: Namespace, link: ModelLink): void {
  if (isDisabled(namespace, link)) return;
  for (const address of ipv6Of(namespace, link.index)) addPrefixRoute(namespace, link, networkOf(address));
}

function addAutomatic(
  namespace: Namespace,
  link: ModelLink,
  { address, length }: { readonly address: Address; readonly length: number },
): void {
  if (ipv6Of(namespace, link.index).some((each) => isSameAddress(each.address, address))) return;
  const flags = ADDRESS_FLAG.permanent | (link.name === "lo" ? 0 : ADDRESS_FLAG.tentative);
  const added: ModelAddress = { linkIndex: link.index, address, length, scope: scopeOf(address), flags };
  namespace.addresses.push(added);
  if (link.name !== "lo") addPrefixRoute(namespace, link, networkOf(added));
  detectDuplicates(namespace, link, added);
}

/** Usable at once if nobody may have the same address, else after a second or two. */
function detectDuplicates(namespace: Namespace, link: ModelLink, address: ModelAddress): void {
  const isSkipped =
    (address.flags & ADDRESS_FLAG.tentative) === 0 ||
    link.kind === "ifb" ||
    link.kind === "dummy" ||
    (!namespace.isSet("net/ipv6/conf/all/accept_dad") && !namespace.isSet(`net/ipv6/conf/${link.name}/accept_dad`));
  if (isSkipped) complete(namespace, link, address);
  else if (link.isIpv6Ready) {
    announceAddress(namespace, address, "new");
    const delay = DETECTION_MILLISECONDS * (1 + namespace.clock.chance());
    namespace.clock.later(delay, () => {
      const isThere = namespace.links.get(link.index) === link && namespace.addresses.includes(address);
      if (isThere && (address.flags & ADDRESS_FLAG.tentative) !== 0) complete(namespace, link, address);
    });
  }
}

function complete(namespace: Namespace, link: ModelLink, address: ModelAddress): void {
  address.flags &= ~ADDRESS_FLAG.tentative;
  addRoute(namespace, link, {
    kind: "local",
    table: TABLE.local,
    priority: 0,
    destination: singlePrefix(address.address),
  });
  announceAddress(namespace, address, "new");
}

export function deleteIpv6(namespace: Namespace, address: ModelAddress, cause?: Cause): void {
  const { linkIndex } = address;
  const network = networkOf(address);
  namespace.addresses.splice(namespace.addresses.indexOf(address), 1);
  announceAddress(namespace, address, "delete", cause);
  deleteLocalRoute(namespace, address);
  forgetSource(namespace, address);
  if (ipv6Of(namespace, linkIndex).some((each) => isSamePrefix(networkOf(each), network))) return;
  deleteFirst(
    namespace,
    (route) =>
      route.table === TABLE.main &&
      route.linkIndex === linkIndex &&
      route.gateway === undefined &&
      isSamePrefix(route.destination, network),
  );
}

function deleteLocalRoute(namespace: Namespace, { address, linkIndex }: ModelAddress): void {
  deleteFirst(
    namespace,
    (route) =>
      route.table === TABLE.local &&
      route.kind === "local" &&
      route.linkIndex === linkIndex &&
      isSamePrefix(route.destination, singlePrefix(address)),
  );
}

/** Routes keep, but choose another source. */
function forgetSource(namespace: Namespace, { address }: ModelAddress): void {
  for (const route of namespace.routes) if (isSame(route.preferredSource, address)) delete route.preferredSource;
}

/** The link goes down: it loses all addresses. Routes are gone already. */
export function dropIpv6(namespace: Namespace, link: ModelLink): void {
  link.isIpv6Ready = false;
  for (const address of ipv6Of(namespace, link.index)) {
    namespace.addresses.splice(namespace.addresses.indexOf(address), 1);
    announceAddress(namespace, address, "delete");
    forgetSource(namespace, address);
  }
}

function prepareMulticast(namespace: Namespace, link: ModelLink): void {
  if (link.name === "lo" || !link.isUp) return;
  addRoute(namespace, link, {
    kind: "multicast",
    table: TABLE.local,
    priority: KERNEL_PRIORITY,
    destination: MULTICAST,
  });
}

function addPrefixRoute(namespace: Namespace, link: ModelLink, destination: Prefix): void {
  if (!link.isUp) return;
  addRoute(namespace, link, { kind: "unicast", table: TABLE.main, priority: KERNEL_PRIORITY, destination });
}

function addRoute(
  namespace: Namespace,
  link: ModelLink,
  of: { readonly kind: RouteKind; readonly table: number; readonly priority: number; readonly destination: Prefix },
): void {
  try {
    const more = { protocol: KERNEL_PROTOCOL, scope: SCOPE.universe, linkIndex: link.index, isOnLink: false };
    insertRoute(namespace, { ...of, ...more }, { flags: FLAG.create });
  } catch (failure) {
    // It exists already.
    if (!(failure instanceof Refusal)) throw failure;
  }
}

function isDisabled(namespace: Namespace, link: ModelLink): boolean {
  return namespace.isSet(`net/ipv6/conf/${link.name}/disable_ipv6`);
}

/** Made of the MAC (EUI-64). */
function linkLocalOf(mac: Uint8Array): Address {
  const bytes = [...mac.subarray(0, 3), 0xff, 0xfe, ...mac.subarray(3, 6)];
  bytes[0] = (bytes[0] ?? 0) ^ 2;
  return { family: 6, value: bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n) | LINK_LOCAL };
}

function ipv6Of(namespace: Namespace, linkIndex: number): readonly ModelAddress[] {
  return namespace.addresses.filter((each) => each.linkIndex === linkIndex && each.address.family === 6);
}

function networkOf({ address, length }: Pick<ModelAddress, "address" | "length">): Prefix {
  return prefixAround(address, length);
}

function scopeOf(address: Address): number {
  if (address.value === 1n) return SCOPE.host;
  if (isLinkLocal(address)) return SCOPE.link;
  return address.value >> 118n === 0x3fbn ? SCOPE.site : SCOPE.universe;
}
