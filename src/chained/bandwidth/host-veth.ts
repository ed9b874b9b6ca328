/** Finds the host's end of a container's veth, where its traffic is shaped. */
import type { AddCall, CheckCall, DelCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "../../linux/netlink-socket.ts";
import { closeNetns, openNetlinkSocketIn, openNetns } from "../../linux/netns.ts";
import { findLink, findLinkByIndex, type Link } from "../../linux/rtnetlink/link.ts";
import { quoted } from "../../quote.ts";

/** Throws an error that says what is missing if there is no host's end. */
export function requireHostVeth(host: NetlinkSocket, call: AddCall | CheckCall, result: CniResult): Link {
  if (result.interfaces.length === 0) throw unshapeable(call.ifname, "prevResult has no interfaces");
  const inside = linkInside(call.netns, call.ifname);
  if (inside === undefined) throw unshapeable(call.ifname, `it does not exist in ${quoted(call.netns)}`);

  const veth = peerOf(host, inside);
  if (veth === undefined) throw unshapeable(call.ifname, "it is not a veth with its other end on the host");
  if (isHostInterface(result, veth.name)) return veth;
  throw unshapeable(call.ifname, `prevResult does not list its other end "${veth.name}" as an interface on the host`);
}

/**
 * The host's end if it can still be found: from inside the container's namespace,
 * whose path is in the call or else in the result. Never by its name on the host: if
 * the container is gone, its link is gone too, and the name may already belong to
 * the next container of the same pod.
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

/** The index alone could belong to a link in a third namespace: each end must name the other as its peer. */
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
