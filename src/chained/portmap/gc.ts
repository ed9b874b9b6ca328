/**
 * GC: takes away what attachments of this network have that the runtime does not
 * know any more, and notes about single addresses that nobody holds.
 * One that cannot be removed does not stop the others.
 */
import type { GcCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { isSameNetwork, ownerOf } from "./attachment.ts";
import { withNetfilterSocket } from "./netfilter-socket.ts";
import { forgetSingleAddresses } from "./refusals.ts";
import { releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { listHeldPerAddress, listOwners } from "./survey.ts";
import { forgetUdp } from "./udp.ts";

export async function gc(call: GcCall, surroundings: Surroundings): Promise<void> {
  const { networkName, validAttachments } = call;
  if (validAttachments === undefined) return;
  const valid = new Set(validAttachments.map((each) => ownerOf(networkName, each).id.toHex()));
  const network = ownerOf(networkName, { containerId: "", ifname: "" }).id;
  const isStale = (id: Uint8Array) => isSameNetwork(id, network) && !valid.has(id.toHex());

  const failures = await withNetfilterSocket(surroundings, (socket) => collect(socket, isStale, surroundings));
  if (failures.length === 0) return;
  const reasons = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
  throw new PluginError("kernel-refused", `Cannot remove all host ports: ${reasons.join("; ")}`);
}

/** Answers what went wrong. */
async function collect(
  socket: NetlinkSocket,
  isStale: (id: Uint8Array) => boolean,
  surroundings: Surroundings,
): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  for (const id of staleOwners(socket, isStale)) {
    try {
      for (const claim of await releasePorts(socket, id)) forgetUdp(socket, claim, surroundings);
    } catch (failure) {
      failures.push(failure);
    }
  }
  for (const family of [4, 6] as const) forgetSingleAddresses(socket, listHeldPerAddress(socket, family));
  return failures;
}

/** Each once, whichever families it has ports in. */
function staleOwners(socket: NetlinkSocket, isStale: (id: Uint8Array) => boolean): readonly Uint8Array[] {
  const owners = new Map<string, Uint8Array>();
  for (const family of [4, 6] as const) {
    for (const id of listOwners(socket, family)) if (isStale(id)) owners.set(id.toHex(), id);
  }
  return [...owners.values()];
}
