/**
 * GC: takes away what attachments of this network have that the runtime does not
 * know any more, and notes about single addresses that nobody holds.
 * One that cannot be removed does not stop the others.
 */
import type { GcCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { closeLater } from "../../linux/close-later.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { isSameNetwork, ownerOf } from "./attachment.ts";
import { forgetSingleAddresses } from "./refusals.ts";
import { releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { listHeldPerAddress, listOwners } from "./survey.ts";
import { forgetUdp } from "./udp.ts";

export async function gc(call: GcCall, surroundings: Surroundings): Promise<void> {
  if (call.validAttachments === undefined) return;
  const socket = openNetlinkSocket("netfilter");
  const valid = new Set(call.validAttachments.map((each) => ownerOf(call.networkName, each).id.toHex()));
  const network = ownerOf(call.networkName, { containerId: "", ifname: "" }).id;

  const failures: unknown[] = [];
  const isStale = (id: Uint8Array) => isSameNetwork(id, network) && !valid.has(id.toHex());
  for (const id of staleOwners(socket, isStale)) {
    try {
      for (const claim of await releasePorts(socket, id)) forgetUdp(socket, claim, surroundings);
    } catch (failure) {
      failures.push(failure);
    }
  }
  for (const family of [4, 6] as const) forgetSingleAddresses(socket, listHeldPerAddress(socket, family));
  closeLater(socket.fd, surroundings.lifetime);
  if (failures.length === 0) return;
  const reasons = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
  throw new PluginError("kernel-refused", `Cannot remove all host ports: ${reasons.join("; ")}`);
}

/** Each once, whichever families it has ports in. */
function staleOwners(socket: NetlinkSocket, isStale: (id: Uint8Array) => boolean): readonly Uint8Array[] {
  const owners = new Map<string, Uint8Array>();
  for (const family of [4, 6] as const) {
    for (const id of listOwners(socket, family)) if (isStale(id)) owners.set(id.toHex(), id);
  }
  return [...owners.values()];
}
