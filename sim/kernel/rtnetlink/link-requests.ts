/** Requests that change or delete links. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { type Attributes, type KernelRequest, nestedAttributes, numberIn, Refusal, textIn } from "../message.ts";
import type { ModelLink } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { AF, GROUP, IFLA, INFO } from "../wire.ts";
import { createLink, type KernelDevices, validateLink } from "./create-link.ts";
import { announceLink, linkMessage } from "./link-message.ts";
import { type LinkRequest, readLinkRequest } from "./link-request.ts";
import { bringDown, bringUp, deleteLinks } from "./link-state.ts";
import { flushNeighbours } from "./neighbours.ts";
import { changeVxlan, largestVxlanMtu } from "./vxlan.ts";

const IFF_UP = 1;
const EVERYTHING = 0xffff_ffff;
const LONGEST_ALIAS = 255;
const LEAST_MTU = 68;
const LARGEST_MTU = 65_535;
const IPV4_SETTING: Readonly<Record<number, string>> = { 1: "forwarding", 3: "proxy_arp", 8: "rp_filter" };

/** Creates or changes a link. */
export function newLink(namespace: Namespace, request: KernelRequest, devices: KernelDevices): boolean {
  const asked = readLinkRequest(request);
  const info = nestedAttributes(asked.attributes.get(IFLA.linkInfo));
  const kind = textIn(info, INFO.kind);
  if (kind === "ipip") devices.loadIpip();
  if (kind !== undefined) validateLink(asked.attributes, kind, nestedAttributes(info.get(INFO.data)));
  const link = findLink(namespace, asked);
  if (link !== undefined) {
    if ((request.flags & FLAG.exclusive) !== 0) throw new Refusal("EEXIST");
    if ((request.flags & FLAG.replace) !== 0) throw new Refusal("EOPNOTSUPP");
    if (kind !== undefined && info.has(INFO.data)) {
      if (link.kind !== kind) throw new Refusal("EOPNOTSUPP");
      if (link.vxlan !== undefined) changeVxlan(namespace, link, nestedAttributes(info.get(INFO.data)));
    }
    return changeLink(namespace, link, asked);
  }
  if ((request.flags & FLAG.create) === 0) return changeGroup(namespace, asked);
  const made = createLink(namespace, asked, devices);
  const announce = () => {
    const message = linkMessage(namespace, made, undefined, EVERYTHING);
    namespace.announce(GROUP.link, message, request);
    if ((request.flags & FLAG.echo) !== 0) devices.answer(message);
  };
  const isUp = (asked.flags & IFF_UP) !== 0;
  // A VXLAN device is announced before it is up.
  if (!isUp || made.vxlan !== undefined) announce();
  if (isUp) bringUp({ namespace, link: made }, announce);
  return true;
}

function findLink(namespace: Namespace, { index, attributes }: LinkRequest): ModelLink | undefined {
  if (index > 0) return namespace.links.get(index);
  const name = textIn(attributes, IFLA.name);
  return name === undefined ? undefined : namespace.linkNamed(name);
}

/** The links of the group that the request names instead of a link; none is no failure. */
function changeGroup(namespace: Namespace, asked: LinkRequest): boolean {
  const group = numberIn(asked.attributes, IFLA.group);
  if (asked.index > 0 || asked.attributes.has(IFLA.name) || group === undefined) throw new Refusal("ENODEV");
  for (const link of [...namespace.links.values()]) {
    if (link.group === group) changeLink(namespace, link, asked);
  }
  return true;
}

/** In the order of the kernel: what was changed before a refusal stays changed. */
function changeLink(namespace: Namespace, link: ModelLink, asked: LinkRequest): boolean {
  const { attributes } = asked;
  const mac = attributes.get(IFLA.address);
  if (mac !== undefined) setMac(namespace, link, mac);
  const mtu = numberIn(attributes, IFLA.mtu);
  if (mtu !== undefined) setMtu(namespace, link, mtu);
  let mustAnnounce = false;
  const group = numberIn(attributes, IFLA.group);
  if (group !== undefined) {
    link.group = group;
    mustAnnounce = true;
  }
  const alias = attributes.get(IFLA.alias);
  if (alias !== undefined) {
    setAlias(link, alias);
    mustAnnounce = true;
  }
  if ((asked.changed & IFF_UP) !== 0 || asked.flags !== 0) {
    if ((asked.flags & IFF_UP) !== 0) bringUp({ namespace, link });
    else bringDown({ namespace, link });
  }
  const length = numberIn(attributes, IFLA.transmitQueueLength);
  if (length !== undefined) link.transmitQueueLength = length;
  if (attributes.has(IFLA.families)) {
    setIpv4(namespace, link, attributes);
    mustAnnounce = true;
  }
  if (mustAnnounce && link.isUp) announceLink(namespace, link);
  return true;
}

function setMac(namespace: Namespace, link: ModelLink, mac: Uint8Array): void {
  if (mac.length !== link.mac.length) throw new Refusal("EINVAL");
  if (link.kind === "ifb") throw new Refusal("EOPNOTSUPP");
  if (((mac[0] ?? 0) & 1) !== 0 || mac.every((byte) => byte === 0)) throw new Refusal("EADDRNOTAVAIL");
  link.mac = mac;
  flushNeighbours(namespace, 4, link.index);
  flushNeighbours(namespace, 6, link.index);
  announceLink(namespace, link);
}

function setMtu(namespace: Namespace, link: ModelLink, mtu: number): void {
  if (mtu === link.mtu) return;
  const isLimited = link.name !== "lo" && link.kind !== "ifb";
  if (isLimited && (mtu < LEAST_MTU || mtu > LARGEST_MTU)) throw new Refusal("EINVAL", "mtu out of range");
  if (mtu > largestVxlanMtu(namespace, link)) throw new Refusal("EINVAL");
  link.mtu = mtu;
  announceLink(namespace, link);
}

function setAlias(link: ModelLink, alias: Uint8Array): void {
  if (alias.length > LONGEST_ALIAS) throw new Refusal("ERANGE");
  const zero = alias.indexOf(0);
  const text = new TextDecoder().decode(zero === -1 ? alias : alias.subarray(0, zero));
  if (text === "") delete link.alias;
  else link.alias = text;
}

function setIpv4(namespace: Namespace, link: ModelLink, attributes: Attributes): void {
  const families = nestedAttributes(attributes.get(IFLA.families));
  const settings = nestedAttributes(nestedAttributes(families.get(AF.inet)).get(1));
  for (const place of settings.keys()) {
    const name = IPV4_SETTING[place];
    const value = numberIn(settings, place);
    if (name !== undefined && value !== undefined) {
      namespace.sysctls.set(`net/ipv4/conf/${link.name}/${name}`, String(value));
    }
  }
}

/** By index, by name, or a whole group. */
export function deleteLink(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readLinkRequest(request);
  const group = numberIn(asked.attributes, IFLA.group);
  const isByGroup = asked.index === 0 && !asked.attributes.has(IFLA.name);
  if (isByGroup && group === undefined) throw new Refusal("EINVAL");
  const found = isByGroup ? linksOfGroup(namespace, group ?? 0) : [findLink(namespace, asked)];
  const links = found.filter((link) => link !== undefined);
  if (links.length === 0) throw new Refusal("ENODEV");
  if (links.some(({ kind }) => kind === undefined)) throw new Refusal("EOPNOTSUPP");
  // The device that the module of IPIP made stays.
  const deleted = links.filter(({ name, kind }) => kind !== "ipip" || name !== "tunl0");
  deleteLinks(deleted.map((link) => ({ namespace, link })));
  return true;
}

function linksOfGroup(namespace: Namespace, group: number): readonly ModelLink[] {
  if (group === 0) throw new Refusal("EPERM");
  return [...namespace.links.values()].filter((link) => link.group === group);
}
