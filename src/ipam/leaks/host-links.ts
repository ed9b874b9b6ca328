/** Reads links and routes of this host for the search for leaks. */
import { addressBits, formatAddress } from "../../ip/address.ts";
import { openFolder } from "../../linux/file-folder.ts";
import { isSameFile, readText } from "../../linux/files.ts";
import { ownSockets, type SocketOpener } from "../../linux/netlink-socket.ts";
import { isFirstProcessOfMachine } from "../../linux/pid-namespace.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { ALLOWED_SOURCES_GROUP } from "../../linux/rtnetlink/own-devices.ts";
import { listRoutes, type Route } from "../../linux/rtnetlink/route.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { type AttachmentRecord, attachmentsFolder, readAttachments } from "../attachment-record.ts";
import type { HostLinks as KnownLinks } from "./find.ts";

/** For the search, and for the tables of the host. */
export interface HostLinks extends KnownLinks {
  /** Marks of the links whose pods may use other sources than their addresses. */
  readonly marksWithSources: ReadonlySet<string>;
  /** What ADDs recorded on the host, by interface. */
  readonly attachments: ReadonlyMap<string, AttachmentRecord>;
  /** Whether the search runs in the network namespace of process 1. */
  readonly isHostNamespace: boolean;
}

export function readHostLinks(runDirectory: string): HostLinks {
  const links = readLinks(ownSockets);
  return {
    ...links,
    attachments: readAttachments(openFolder(attachmentsFolder(runDirectory))),
    bootedAt: bootedAt(),
    isHostNamespace: isNetworkOfFirstProcess() && (isFirstProcessOfMachine() || links.marks.size > 0),
  };
}

export function readLinks(kernel: SocketOpener): Pick<HostLinks, "marks" | "marksWithSources" | "routed"> {
  const { links, routes } = withRouteSocket(kernel, (socket) => ({
    links: listLinks(socket),
    routes: listRoutes(socket),
  }));
  const marks = links.flatMap(({ alias }) => alias ?? []);
  const aliases = new Map(links.map(({ index, alias }) => [index, alias]));
  return {
    marks: new Set(marks),
    marksWithSources: new Set(
      links.flatMap(({ alias, group }) => (alias !== undefined && group === ALLOWED_SOURCES_GROUP ? alias : [])),
    ),
    routed: new Map(
      routes
        .filter(isToOneAddress)
        .map(({ destination, linkIndex = 0 }) => [formatAddress(destination.network), aliases.get(linkIndex) ?? ""]),
    ),
  };
}

function isToOneAddress({ kind = "unicast", linkIndex, destination }: Route): boolean {
  const { network, length } = destination;
  return kind === "unicast" && linkIndex !== undefined && length === addressBits(network.family);
}

function isNetworkOfFirstProcess(): boolean {
  return isSameFile("/proc/1/ns/net", "/proc/self/ns/net");
}

/** `btime` of /proc/stat. */
export function bootedAt(): Date {
  return new Date(Number(/^btime (\d+)$/m.exec(readText("/proc/stat") ?? "")?.[1] ?? 0) * 1000);
}
