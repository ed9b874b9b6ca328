/**
 * The interfaces of the host with their addresses, and when to read them again: the kernel sends a message about each
 * change. Interfaces that are not wanted (those of workloads, which come and go all the time) cause no reading.
 */
import type { Address } from "../../ip/address.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import { arrivals, joinGroups } from "../netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../netlink-socket.ts";
import { RTM as ADDRESS, listAddresses } from "./address.ts";
import { listLinks, readLink } from "./link.ts";
import { RTM as LINK } from "./link-wire.ts";

/** RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR. */
const GROUPS = [1, 5, 9] as const;
const BUFFER_BYTES = 1024 * 1024;
/** Where messages about links and about addresses contain the index of the link. */
const INDEX_AT = 4;

export interface InterfaceAddresses {
  readonly name: string;
  readonly addresses: readonly Address[];
}

/** Sorted by name. */
export function readInterfaces(
  socket: NetlinkSocket,
  isWanted: (name: string) => boolean = () => true,
): readonly (InterfaceAddresses & { readonly index: number })[] {
  const links = listLinks(socket).filter(({ name }) => isWanted(name));
  const byLink = Map.groupBy(listAddresses(socket), ({ linkIndex }) => linkIndex);
  return links
    .map(({ index, name }) => ({ index, name, addresses: (byLink.get(index) ?? []).map(({ address }) => address) }))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
}

export class InterfaceMonitor {
  private readonly socket: NetlinkSocket;
  private readonly listener: NetlinkSocket;
  /** Index -> name, as read last. */
  private known: ReadonlyMap<number, string> = new Map();

  /** `isWanted`: by the name of the interface. */
  constructor(
    kernel: SocketOpener,
    private readonly isWanted: (name: string) => boolean,
  ) {
    this.socket = kernel.openSocket("route");
    this.listener = kernel.openSocket("route");
    joinGroups(this.listener, GROUPS, BUFFER_BYTES);
  }

  /** All wanted interfaces as they are now, sorted by name. */
  read(): readonly InterfaceAddresses[] {
    const interfaces = readInterfaces(this.socket, this.isWanted);
    this.known = new Map(interfaces.map(({ index, name }) => [index, name]));
    return interfaces.map(({ name, addresses }) => ({ name, addresses }));
  }

  /** One value for each time that something may differ from what was read last, until the signal is aborted. */
  async *changes(signal: AbortSignal): AsyncGenerator<void> {
    for await (const arrived of arrivals(this.listener, signal)) if (this.mayDiffer(arrived)) yield;
  }

  close(): void {
    closeNetlinkSocket(this.socket);
    closeNetlinkSocket(this.listener);
  }

  private mayDiffer(arrived: MessageCursor | "lost"): boolean {
    if (arrived === "lost") return true;
    while (arrived.next()) if (this.isRelevant(arrived)) return true;
    return false;
  }

  private isRelevant(message: MessageCursor): boolean {
    const known = this.known.get(message.view.getInt32(message.start + INDEX_AT, true));
    switch (message.type) {
      case LINK.newLink: {
        const { name = "" } = readLink(message) ?? {};
        return known === undefined ? this.isWanted(name) : known !== name;
      }
      case LINK.deleteLink:
      case ADDRESS.newAddress:
      case ADDRESS.deleteAddress:
        return known !== undefined;
      default:
        return false;
    }
  }
}
