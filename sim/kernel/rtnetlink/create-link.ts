/** Creates links of all kinds that the model knows. */
import { type Attributes, type KernelMessage, nestedAttributes, numberIn, Refusal, textIn } from "../message.ts";
import type { LinkKind, ModelLink } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { addLinkSettings } from "../settings.ts";
import { IFLA, INFO, LINK_KINDS, VETH_PEER } from "../wire.ts";
import { announceLink } from "./link-message.ts";
import type { LinkRequest } from "./link-request.ts";
import { announceBelow, unregister, watchCarrier } from "./link-state.ts";
import { cappedMtu, readNewVxlan, validateVxlan } from "./vxlan.ts";

const LONGEST_NAME = 15;
const LINK_HEADER_LENGTH = 16;
const EVERYTHING = 0xffff_ffff;
const MAC_LENGTH = 6;
const DEFAULT_MTU = 1500;

/** What the creation of links needs from the host. */
export interface KernelDevices {
  readonly processors: number;
  readonly kinds: ReadonlySet<LinkKind>;
  /** `undefined` if it is not the descriptor of a namespace. */
  namespaceOf(descriptor: number): Namespace | undefined;
  randomMac(): Uint8Array;
  /** The module creates its device when it is first used. */
  loadIpip(): void;
  /** To the socket that sent the request. */
  answer(message: KernelMessage): void;
}

export function createLink(namespace: Namespace, asked: LinkRequest, devices: KernelDevices): ModelLink {
  const { attributes } = asked;
  const info = nestedAttributes(attributes.get(IFLA.linkInfo));
  const kind = LINK_KINDS.find((each) => each === textIn(info, INFO.kind));
  if (kind === undefined || !devices.kinds.has(kind)) throw new Refusal("EOPNOTSUPP", "Unknown device type");
  const data = nestedAttributes(info.get(INFO.data));
  const link = kind === "veth" ? createPair(namespace, asked, { data, devices }) : undefined;
  return link ?? createSingle(namespace, attributes, { kind, data, devices });
}

function createSingle(
  namespace: Namespace,
  attributes: Attributes,
  { kind, data, devices }: { readonly kind: LinkKind; readonly data: Attributes; readonly devices: KernelDevices },
): ModelLink {
  const vxlan = kind === "vxlan" ? readNewVxlan(namespace, data) : undefined;
  const link = register(namespace, attributes, { kind, devices });
  if (vxlan !== undefined) {
    link.vxlan = vxlan;
    link.mtu = cappedMtu(namespace, link, numberIn(attributes, IFLA.mtu));
    announceBelow(namespace, link);
  }
  return link;
}

/** The other end first, in its namespace. */
function createPair(
  namespace: Namespace,
  { attributes }: LinkRequest,
  { data, devices }: { readonly data: Attributes; readonly devices: KernelDevices },
): ModelLink {
  const peerAttributes = nestedAttributes(data.get(VETH_PEER), LINK_HEADER_LENGTH);
  const descriptor = numberIn(peerAttributes, IFLA.netnsFd);
  const other = descriptor === undefined ? namespace : devices.namespaceOf(descriptor);
  if (other === undefined) throw new Refusal("EBADF");
  const name = requireName(attributes);
  const peer = register(other, peerAttributes, { kind: "veth", devices });
  announceLink(other, peer, EVERYTHING);
  if (other === namespace && peer.name === name) {
    unregister({ namespace, link: peer });
    throw new Refusal("EEXIST");
  }
  const link = register(namespace, attributes, { kind: "veth", devices });
  link.peer = { namespace: other, index: peer.index };
  peer.peer = { namespace, index: link.index };
  watchCarrier({ namespace: other, link: peer });
  watchCarrier({ namespace, link });
  return link;
}

function register(
  namespace: Namespace,
  attributes: Attributes,
  { kind, devices }: { readonly kind: LinkKind; readonly devices: KernelDevices },
): ModelLink {
  const name = requireName(attributes);
  if (namespace.linkNamed(name) !== undefined) throw new Refusal("EEXIST");
  const queues = kind === "veth" ? devices.processors : 1;
  return addLink(namespace, {
    name,
    kind,
    mac: attributes.get(IFLA.address) ?? (kind === "ipip" ? new Uint8Array(4) : devices.randomMac()),
    mtu: numberIn(attributes, IFLA.mtu) ?? (kind === "ipip" ? 1480 : DEFAULT_MTU),
    group: numberIn(attributes, IFLA.group) ?? 0,
    transmitQueueLength: numberIn(attributes, IFLA.transmitQueueLength) ?? 1000,
    transmitQueues: numberIn(attributes, IFLA.transmitQueues) ?? queues,
    receiveQueues: numberIn(attributes, IFLA.receiveQueues) ?? queues,
  });
}

/** A link that no request creates. It is down at first. */
export function registerHardware(
  namespace: Namespace,
  { name, mac, mtu = DEFAULT_MTU }: { readonly name: string; readonly mac: Uint8Array; readonly mtu?: number },
): ModelLink {
  const more = { group: 0, transmitQueueLength: 1000, transmitQueues: 1, receiveQueues: 1 };
  return addLink(namespace, { name, mac, mtu, ...more });
}

type NewLink = Pick<
  ModelLink,
  "name" | "kind" | "mac" | "mtu" | "group" | "transmitQueueLength" | "transmitQueues" | "receiveQueues"
>;

function addLink(namespace: Namespace, settings: NewLink): ModelLink {
  const link: ModelLink = {
    ...settings,
    index: namespace.reserveIndex(),
    isUp: false,
    hasCarrier: settings.kind !== "veth",
    operState: "unknown",
    isCarrierChangePending: false,
    isActive: false,
    isIpv6Ready: false,
  };
  namespace.links.set(link.index, link);
  addLinkSettings(namespace.sysctls, link.name);
  return link;
}

function requireName(attributes: Attributes): string {
  const name = textIn(attributes, IFLA.name) ?? "";
  if (name.length > LONGEST_NAME) throw new Refusal("ERANGE");
  if (name === "" || name === "." || name === ".." || /[/:\s]/.test(name)) throw new Refusal("EINVAL");
  return name;
}

/** What the kernel checks before it looks whether the link exists. */
export function validateLink(attributes: Attributes, kind: string, data: Attributes): void {
  validate(attributes, kind);
  if (kind === "veth" && data.has(VETH_PEER)) validate(nestedAttributes(data.get(VETH_PEER), LINK_HEADER_LENGTH), kind);
  if (kind === "vxlan") validateVxlan(data);
}

function validate(attributes: Attributes, kind: string): void {
  const mac = attributes.get(IFLA.address);
  if (mac !== undefined && kind !== "ipip") {
    if (mac.length !== MAC_LENGTH) throw new Refusal("EINVAL");
    if (((mac[0] ?? 0) & 1) !== 0 || mac.every((byte) => byte === 0)) throw new Refusal("EADDRNOTAVAIL");
  }
  const mtu = numberIn(attributes, IFLA.mtu);
  if (mtu !== undefined && kind !== "ifb" && (mtu < 68 || mtu > 65_535)) throw new Refusal("EINVAL");
}

/** The device that loading the module of IPIP makes in each namespace. */
export function addIpipDevice(namespace: Namespace, devices: KernelDevices): void {
  if (namespace.linkNamed("tunl0") !== undefined) return;
  const attributes: Attributes = new Map([[IFLA.name, new TextEncoder().encode("tunl0")]]);
  announceLink(namespace, register(namespace, attributes, { kind: "ipip", devices }), EVERYTHING);
}
