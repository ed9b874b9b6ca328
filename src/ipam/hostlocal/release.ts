/** DEL and GC: addresses given back, of one attachment or of all that are gone. */
import type { Attachment } from "../../cni/attachments.ts";
import { PluginError } from "../../errors.ts";
import { lastChangeOf } from "../../linux/files.ts";
import { type NetworkInput, networkDirectory } from "./config.ts";
import { doubt, openIndex, rebuildIndex, vouchFor } from "./owner-index.ts";
import { type Owner, release } from "./store.ts";
import { inTurn } from "./turn.ts";
import { walk } from "./walk.ts";

export interface DelInput extends NetworkInput {
  readonly containerId: string;
  readonly ifname: string;
}

export interface GcInput extends NetworkInput {
  readonly validAttachments: readonly Attachment[] | undefined;
}

/** Succeeds when there is nothing to give back. The ranges of the config are not looked at. */
export async function hostLocalDel(input: DelInput, signal: AbortSignal): Promise<void> {
  const directory = networkDirectory(input);
  if (lastChangeOf(directory) === undefined) return;
  const owner = { containerId: input.containerId.trim(), ifname: input.ifname };
  await inTurn(directory, signal, () => {
    const index = openIndex(directory);
    const holding = index.holdingOf(owner);
    if (holding.addresses.length === 0) return;
    doubt(index);
    releaseAll(directory, holding.addresses);
    vouchFor(index, index.lastReserved, { ...holding, addresses: [] });
  });
}

/** Frees what nobody in the list holds, and what dead processes left empty. No list: frees nothing. */
export async function hostLocalGc(input: GcInput, signal: AbortSignal): Promise<void> {
  const { validAttachments } = input;
  const directory = networkDirectory(input);
  if (validAttachments === undefined || lastChangeOf(directory) === undefined) return;
  const isValid = validity(validAttachments);
  await inTurn(directory, signal, () => {
    const { reservations } = walk(directory);
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

/** An old file names no interface: it is kept as long as its container has any. */
function validity(attachments: readonly Attachment[]): (owner: Owner) => boolean {
  const containers = new Set(attachments.map(({ containerId }) => containerId));
  const pairs = new Set(attachments.map(({ containerId, ifname }) => `${containerId}/${ifname}`));
  return ({ containerId, ifname }) =>
    ifname === undefined ? containers.has(containerId) : pairs.has(`${containerId}/${ifname}`);
}

/** Tries every one before it fails. */
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
  throw new PluginError("io-failure", `Cannot give back every address: ${failures.join("; ")}`);
}
