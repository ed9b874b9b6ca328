/** VXLAN devices: Ethernet frames in UDP datagrams between hosts. */
import { type Address, addressBytes, addressFromBytes } from "../../ip/address.ts";
import type { AttributeCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import type { NetlinkSocket } from "../netlink-socket.ts";
import { createLink, writeKind } from "./create-link.ts";
import { describeLink, type Link, type LinkReference, readInfoData, readLink, readReversePathFilter } from "./link.ts";
import { LINK, linkHeader, RTM } from "./link-wire.ts";

const VXLAN = { id: 1, link: 3, localIpv4: 4, learning: 7, port: 15, localIpv6: 17 } as const;
const KIND = "vxlan";

export interface VxlanSettings {
  /** The network identifier (VNI). */
  readonly id: number;
  /** The address that its datagrams are sent from. */
  readonly local: Address;
  /** The link that they are sent through. */
  readonly underlyingIndex: number;
  /** The UDP port at the destination. */
  readonly port: number;
}

export interface NewVxlan extends VxlanSettings {
  readonly name: string;
  readonly mac: Uint8Array;
  readonly mtu: number;
  readonly state: "up" | "down";
}

/** It learns nothing from packets: only forwarding entries say where a MAC is. EEXIST if the name is in use. */
export function createVxlan(device: NewVxlan): NetlinkRequest {
  return createLink({
    ...device,
    kind: KIND,
    attributes(writer) {
      writer.bytes(LINK.address, device.mac);
      writer.u32(LINK.mtu, device.mtu);
    },
    settings(writer) {
      writer.u32(VXLAN.link, device.underlyingIndex);
      writer.u32(VXLAN.id, device.id);
      writeLocal(writer, device.local);
      writer.u8(VXLAN.learning, 0);
      writer.u16Big(VXLAN.port, device.port);
    },
  });
}

/** The kernel can change these of an existing device; entries and routes stay. The family of `local` must be the same. */
export function changeVxlan(
  link: LinkReference,
  change: Partial<Pick<VxlanSettings, "local" | "underlyingIndex">>,
): NetlinkRequest {
  return {
    action: `change link "${link.name}"`,
    type: RTM.newLink,
    flags: 0,
    write(writer) {
      writer.raw(linkHeader(link.index ?? 0));
      if (link.index === undefined) writer.text(LINK.name, link.name);
      writeKind(writer, KIND, () => {
        if (change.underlyingIndex !== undefined) writer.u32(VXLAN.link, change.underlyingIndex);
        if (change.local !== undefined) writeLocal(writer, change.local);
      });
    },
  };
}

export interface KnownVxlan extends Partial<VxlanSettings> {
  readonly learns: boolean;
}

export interface LinkWithVxlan {
  readonly link: Link;
  /** Absent if the link is of another kind. */
  readonly vxlan?: KnownVxlan;
  /** Of IPv4: 0 off, 1 strict, 2 loose. */
  readonly reversePathFilter?: number;
}

/** The link of that name, whatever its kind. */
export function findVxlan(socket: NetlinkSocket, name: string): LinkWithVxlan | undefined {
  return describeLink(socket, name, (message) => {
    const link = readLink(message);
    if (link === undefined) return undefined;
    const data = readInfoData(message, KIND);
    const reversePathFilter = readReversePathFilter(message);
    return {
      link,
      ...(data === undefined ? {} : { vxlan: readSettings(data) }),
      ...(reversePathFilter === undefined ? {} : { reversePathFilter }),
    };
  });
}

function readSettings(data: AttributeCursor): KnownVxlan {
  const settings: { -readonly [Field in keyof KnownVxlan]: KnownVxlan[Field] } = { learns: true };
  while (data.next()) {
    if (data.type === VXLAN.id) settings.id = data.u32();
    else if (data.type === VXLAN.link) settings.underlyingIndex = data.u32();
    else if (data.type === VXLAN.port) settings.port = data.u16Big();
    else if (data.type === VXLAN.learning) settings.learns = data.u8() !== 0;
    else if (data.type === VXLAN.localIpv4 || data.type === VXLAN.localIpv6) {
      const local = addressFromBytes(data.copy());
      if (local !== undefined) settings.local = local;
    }
  }
  return settings;
}

function writeLocal(writer: MessageWriter, local: Address): void {
  writer.bytes(local.family === 4 ? VXLAN.localIpv4 : VXLAN.localIpv6, addressBytes(local));
}
