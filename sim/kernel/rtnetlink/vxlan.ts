/** The settings of VXLAN devices. */
import { addressFromBytes } from "../../../src/ip/address.ts";
import { type Attributes, numberIn, Refusal } from "../message.ts";
import type { ModelLink, ModelVxlan } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { VXLAN } from "../wire.ts";
import { announceLink } from "./link-message.ts";

const LARGEST_ID = 2 ** 24 - 1;
/** The port that Linux used before there was a standard. */
const DEFAULT_PORT = 8472;
const HEADERS = { 4: 50, 6: 70 } as const;
const LARGEST_MTU = 65_535;
const LEAST_MTU = 68;

export function validateVxlan(data: Attributes): void {
  if ((numberIn(data, VXLAN.id) ?? 0) > LARGEST_ID) throw new Refusal("ERANGE", "VXLAN ID is out of range");
}

export function readNewVxlan(namespace: Namespace, data: Attributes): ModelVxlan {
  const id = numberIn(data, VXLAN.id) ?? 0;
  const local = localIn(data);
  const family = local?.family ?? 4;
  const underlyingIndex = numberIn(data, VXLAN.link);
  if (underlyingIndex !== undefined && !namespace.links.has(underlyingIndex))
    throw new Refusal("ENODEV", "Invalid local interface, device not found");
  const port = portIn(data) ?? DEFAULT_PORT;
  for (const { vxlan } of namespace.links.values()) {
    if (vxlan?.id === id && vxlan.port === port && vxlan.family === family)
      throw new Refusal("EEXIST", "A VXLAN device with the specified VNI already exists");
  }
  return {
    id,
    family,
    port,
    learns: data.get(VXLAN.learning)?.[0] !== 0,
    ...(local === undefined ? {} : { local }),
    ...(underlyingIndex === undefined ? {} : { underlyingIndex }),
  };
}

/** Only the address and the link below can be changed. */
export function changeVxlan(namespace: Namespace, link: ModelLink, data: Attributes): void {
  const { vxlan } = link;
  if (vxlan === undefined) return;
  const local = localIn(data);
  if (local !== undefined && local.family !== vxlan.family)
    throw new Refusal("EOPNOTSUPP", "New local address family does not match old");
  const underlyingIndex = numberIn(data, VXLAN.link);
  if (underlyingIndex !== undefined && !namespace.links.has(underlyingIndex))
    throw new Refusal("ENODEV", "Invalid local interface, device not found");
  if (underlyingIndex !== undefined && isBelow(namespace, underlyingIndex, link.index)) throw new Refusal("EBUSY");
  if (local !== undefined) vxlan.local = local;
  if (underlyingIndex !== undefined && underlyingIndex !== vxlan.underlyingIndex) {
    const changed = [underlyingIndex, vxlan.underlyingIndex].map((index) => namespace.links.get(index ?? 0));
    vxlan.underlyingIndex = underlyingIndex;
    for (const below of changed) if (below !== undefined) announceLink(namespace, below);
    link.mtu = Math.min(link.mtu, largestVxlanMtu(namespace, link));
  }
  if (link.isUp) announceLink(namespace, link);
}

/** Whether the device is the link, or stands on it. */
function isBelow(namespace: Namespace, device: number, link: number): boolean {
  if (device === link) return true;
  const below = namespace.links.get(device)?.vxlan?.underlyingIndex;
  return below !== undefined && isBelow(namespace, below, link);
}

export function cappedMtu(namespace: Namespace, link: ModelLink, asked: number | undefined): number {
  const largest = largestVxlanMtu(namespace, link);
  return asked === undefined && link.vxlan?.underlyingIndex !== undefined ? largest : Math.min(link.mtu, largest);
}

/** Infinite for a link of another kind. */
export function largestVxlanMtu(namespace: Namespace, { vxlan }: ModelLink): number {
  if (vxlan === undefined) return Number.POSITIVE_INFINITY;
  const below = vxlan.underlyingIndex === undefined ? undefined : namespace.links.get(vxlan.underlyingIndex);
  return below === undefined ? LARGEST_MTU : Math.max(below.mtu - HEADERS[vxlan.family], LEAST_MTU);
}

function localIn(data: Attributes) {
  return addressFromBytes(data.get(VXLAN.local[4]) ?? data.get(VXLAN.local[6]) ?? new Uint8Array());
}

function portIn(data: Attributes): number | undefined {
  const value = data.get(VXLAN.port);
  return value === undefined ? undefined : new DataView(value.buffer).getUint16(0);
}
