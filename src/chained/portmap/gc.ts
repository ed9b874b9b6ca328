/**
 * GC: removes the ports of attachments of this network that the runtime no longer
 * lists, and notes about single addresses that nobody uses.
 * A failure to remove one does not stop the others.
 */
import type { GcCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { type FileFolder, finishedNameOf } from "../../linux/file-folder.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { areOfDifferentNetns, isHostNetnsGone, markOwnNetns } from "../../linux/netns-mark.ts";
import { takeBackLoopbackSources } from "./loopback-sources.ts";
import { isSameNetwork, ownerOf } from "./port-owner.ts";
import { readRecord } from "./read-record-file.ts";
import { listHeldPerAddress, listHolders, listOwners } from "./read-table.ts";
import { hostPortsFolder, ownerIdOf } from "./record-file.ts";
import { forgetSingleAddresses } from "./refusals.ts";
import { releaseExactly, releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { forgetUdp } from "./udp.ts";

export async function gc(call: GcCall, surroundings: Surroundings): Promise<void> {
  const { networkName, validAttachments } = call;
  if (validAttachments === undefined) return;
  const valid = new Set(validAttachments.map((each) => ownerOf(networkName, each).id.toHex()));
  const network = ownerOf(networkName, { containerId: "", ifname: "" }).id;
  const isStale = (id: Uint8Array) => isSameNetwork(id, network) && !valid.has(id.toHex());

  const netfilter = await surroundings.loadNetfilter();
  const failures = await netfilter.withSocket((socket) => collect(socket, isStale, surroundings));
  if (failures.length === 0) return;
  const reasons = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
  throw new PluginError("kernel-refused", `Cannot remove all host ports: ${reasons.join("; ")}`);
}

type ReleaseAll = (socket: NetlinkSocket, id: Uint8Array) => ReturnType<typeof releasePorts>;

/** Returns the failures. */
async function collect(
  socket: NetlinkSocket,
  isStale: (id: Uint8Array) => boolean,
  surroundings: Surroundings,
): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  const folder = await surroundings.openFolder(hostPortsFolder(surroundings.runDirectory));
  try {
    removeStaleFiles(folder, isStale);
  } catch (failure) {
    failures.push(failure);
  }
  const release = async (ids: readonly Uint8Array[], releaseOne: ReleaseAll) => {
    for (const id of ids) {
      try {
        const released = await releaseOne(socket, id);
        takeBackLoopbackSources(socket, released);
        for (const claim of released) forgetUdp(socket, claim, (message) => surroundings.log.warning(message));
      } catch (failure) {
        failures.push(failure);
      }
    }
  };
  await release(distinct(socket, listOwners).filter(isStale), releasePorts);
  // An owner that still has something had no record of it.
  await release(distinct(socket, listHolders).filter(isStale), releaseExactly);
  for (const family of [4, 6] as const) forgetSingleAddresses(socket, listHeldPerAddress(socket, family));
  return failures;
}

/**
 * After a flush of the ruleset they may be all that is left. Those of another host namespace are left to the GC there,
 * unless it is gone. An ADD that was killed leaves an unfinished file.
 */
function removeStaleFiles(folder: FileFolder, isStale: (id: Uint8Array) => boolean): void {
  if (folder.changedAt() === undefined) return;
  const host = markOwnNetns();
  for (const name of folder.list()) {
    const id = ownerIdOf(finishedNameOf(name) ?? name);
    if (id === undefined || !isStale(id)) continue;
    const recorded = recordedHost(folder, { name, id });
    if (recorded === undefined || !areOfDifferentNetns(recorded, host) || isHostNetnsGone(recorded)) {
      folder.remove(name);
    }
  }
}

/** `undefined` if a former release wrote the file, or if it is damaged. */
function recordedHost(folder: FileFolder, file: { readonly name: string; readonly id: Uint8Array }) {
  try {
    return readRecord(folder, file)?.recorded.hostNetns;
  } catch {
    return undefined;
  }
}

/** Each owner once, whatever it has and in whichever families. */
function distinct(socket: NetlinkSocket, list: typeof listOwners): readonly Uint8Array[] {
  const owners = [...list(socket, 4), ...list(socket, 6)];
  return [...new Map(owners.map((id) => [id.toHex(), id])).values()];
}
