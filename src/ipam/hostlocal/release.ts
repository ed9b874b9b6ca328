/** DEL and GC: release the addresses of one attachment, or of all that no longer exist. */
import type { Attachment } from "../../cni/attachments.ts";
import { PluginError } from "../../errors.ts";
import { lastChangeOf } from "../../linux/files.ts";
import { type NetworkInput, networkDirectory } from "./config.ts";
import { readNetworkFiles } from "./network-files.ts";
import { withNetworkLock } from "./network-lock.ts";
import { markStale, markValid, openIndex, rebuildIndex } from "./owner-index.ts";
import { type Owner, release } from "./store.ts";

export interface DelInput extends NetworkInput {
  readonly containerId: string;
  readonly ifname: string;
}

export interface GcInput extends NetworkInput {
  readonly validAttachments: readonly Attachment[] | undefined;
}

/** Returns the released addresses: none is success. Does not use the ranges of the config. */
export async function hostLocalDel(input: DelInput, signal: AbortSignal): Promise<readonly string[]> {
  const directory = networkDirectory(input);
  if (lastChangeOf(directory) === undefined) return [];
  const owner = { containerId: input.containerId.trim(), ifname: input.ifname };
  return withNetworkLock(directory, signal, () => {
    const index = openIndex(directory);
    const owned = index.addressesOf(owner);
    if (owned.addresses.length === 0) return [];
    markStale(index);
    releaseAll(directory, owned.addresses);
    markValid(index, index.lastReserved, { ...owned, addresses: [] });
    return owned.addresses;
  });
}

/** Releases the addresses of every owner that is not in the list, and empty reservations. Without a list: nothing. */
export async function hostLocalGc(input: GcInput, signal: AbortSignal): Promise<void> {
  const { validAttachments } = input;
  const directory = networkDirectory(input);
  if (validAttachments === undefined || lastChangeOf(directory) === undefined) return;
  const isValid = validity(validAttachments);
  await withNetworkLock(directory, signal, () => {
    const { reservations } = readNetworkFiles(directory);
    const stale = reservations.filter(({ owner }) => owner === undefined || !isValid(owner));
    try {
      releaseAll(
        directory,
        stale.map(({ address }) => address),
      );
    } finally {
      rebuildIndex(directory);
    }
  });
}

/** An old file does not name the interface: it is kept as long as its container has any attachment. */
function validity(attachments: readonly Attachment[]): (owner: Owner) => boolean {
  const containers = new Set(attachments.map(({ containerId }) => containerId));
  const pairs = new Set(attachments.map(({ containerId, ifname }) => `${containerId}/${ifname}`));
  return ({ containerId, ifname }) =>
    ifname === undefined ? containers.has(containerId) : pairs.has(`${containerId}/${ifname}`);
}

/** Tries to release every address before it throws. */
function releaseAll(directory: string, addresses: readonly string[]): void {
  const failures: string[] = [];
  for (const address of addresses) {
    try {
      release(directory, address);
    } catch (failure) {
      failures.push(failure instanceof Error ? failure.message : String(failure));
    }
  }
  if (failures.length === 0) return;
  throw new PluginError("io-failure", `Cannot release every address: ${failures.join("; ")}`);
}
