/** The host's end of a container's interface: where its traffic is shaped. */
import type { AddCall, CheckCall, DelCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "../../linux/netlink-socket.ts";
import { closeNetns, openNetlinkSocketIn, openNetns } from "../../linux/netns.ts";
import { findLink, findLinkByIndex, type Link } from "../../linux/rtnetlink/link.ts";

/** The host's end; the failure says what is missing. */
export function requireHostVeth(host: NetlinkSocket, call: AddCall | CheckCall, result: CniResult): Link {
  if (result.interfaces.length === 0) throw unshapeable(call.ifname, "prevResult names no interfaces");
  const inside = linkInside(call.netns, call.ifname);
  if (inside === undefined) throw unshapeable(call.ifname, `it does not exist in "${call.netns}"`);

  const veth = peerOf(host, inside);
  if (veth === undefined) throw unshapeable(call.ifname, "it has no other end on the host");
  if (isHostInterface(result, veth.name)) return veth;
  throw unshapeable(call.ifname, `prevResult does not name its other end "${veth.name}" as an interface of the host`);
}

/**
 * The host's end as far as it can still be found: from inside the container,
 * which the call names or else the result. Never by its name on the host: where
 * the container is gone its link is gone too, and the name is perhaps that of the
 * same pod's next container.
 */
export function findHostVeth(
  host: NetlinkSocket,
  { netns, ifname, prevResult }: Pick<DelCall, "netns" | "ifname" | "prevResult">,
): Link | undefined {
  const path = netns ?? prevResult?.interfaces.find(({ name, sandbox }) => name === ifname && sandbox)?.sandbox;
  const inside = path === undefined ? undefined : linkInside(path, ifname);
  return inside === undefined ? undefined : peerOf(host, inside);
}

function linkInside(path: string, ifname: string): Link | undefined {
  const netns = openNetns(path);
  if (netns === undefined) return undefined;
  try {
    const socket = openNetlinkSocketIn(netns, "route");
    try {
      return findLink(socket, ifname);
    } finally {
      closeNetlinkSocket(socket);
    }
  } finally {
    closeNetns(netns);
  }
}

/** An index alone could be that of a link in some third namespace: both ends must know each other. */
function peerOf(host: NetlinkSocket, inside: Link): Link | undefined {
  if (inside.kind !== "veth" || inside.peerIndex === undefined) return undefined;
  const peer = findLinkByIndex(host, inside.peerIndex);
  return peer?.kind === "veth" && peer.peerIndex === inside.index ? peer : undefined;
}

function isHostInterface(result: CniResult, name: string): boolean {
  return result.interfaces.some((each) => each.name === name && each.sandbox === undefined);
}

function unshapeable(ifname: string, state: string): PluginError {
  return new PluginError("config-invalid", `Cannot shape interface "${ifname}": ${state}`);
}
