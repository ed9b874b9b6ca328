/**
 * An index of the addresses of each container, kept beside the reservations so that
 * neither ADD nor DEL has to read them all:
 *
 *   <network>/.index/state   whether the index is valid
 *   <network>/.index/…       the entries (`index-buckets.ts`)
 *
 * It is only a cache. Upstream's plugin adds and removes reservations without it, so
 *  - it is valid only while the folder has not changed since `state` was written:
 *    same modification time, same last reserved addresses (the time alone would
 *    not show two changes within one tick of the kernel's clock);
 *  - an address in it counts only if its reservation names the same owner;
 *  - it is marked stale before a change and valid after it, so that a process that
 *    is killed in between leaves it stale.
 * If it is stale, all files are read and the index is written again. A failure to
 * write the index is ignored.
 */
import { lastChangeOf, overwriteText, readText } from "../../linux/files.ts";
import { type Entries, openEntries, writeEntries } from "./index-buckets.ts";
import { readNetworkFiles } from "./network-files.ts";
import { type Owner, ownerText, readLastReserved, readReservation, release } from "./store.ts";

export interface OwnerIndex {
  readonly directory: string;
  /** The address assigned last from each set, as in its file; empty if it has no file. */
  readonly lastReserved: readonly string[];
  readonly entries: Entries;
  /** The addresses reserved for container and interface; if there are none, those of old files for the container alone. */
  addressesOf(owner: Owner): OwnedAddresses;
}

export interface OwnedAddresses {
  /** As in the reservations. */
  readonly owner: Owner;
  readonly addresses: readonly string[];
}

const FORMAT = "#1";
const STALE = "?";
/** Ends the state: the rest of a longer, older one may follow. */
const END = ".";
const STATE = "state";

/** The caller must hold the lock, as for every function here. */
export function openIndex(directory: string): OwnerIndex {
  const lastReserved = validState(directory);
  if (lastReserved === undefined) return rebuildIndex(directory);
  const entries = openEntries(indexFolder(directory));
  return { directory, lastReserved, entries, addressesOf: (owner) => verified(directory, owner, entries.read) };
}

/** Reads all files and writes the index. Removes empty reservations, which belong to nobody. */
export function rebuildIndex(directory: string): OwnerIndex {
  const { reservations, lastReservedSets } = readNetworkFiles(directory);
  const all = new Map<string, { owner: Owner; addresses: string[] }>();
  for (const { address, owner } of reservations) {
    if (owner === undefined) {
      attempt(() => void release(directory, address));
      continue;
    }
    const addresses = all.get(ownerText(owner))?.addresses ?? [];
    all.set(ownerText(owner), { owner, addresses: [...addresses, address] });
  }
  const count = Math.max(-1, ...lastReservedSets) + 1;
  const lastReserved = Array.from({ length: count }, (_, set) => readLastReserved(directory, set) ?? "");
  attempt(() => {
    const { mkdirSync }: typeof import("node:fs") = require("node:fs");
    mkdirSync(indexFolder(directory), { recursive: true, mode: 0o700 });
    writeEntries(indexFolder(directory), [...all.values()]);
    writeState(directory, lastReserved);
  });
  const found = (owner: Owner) => all.get(ownerText(owner))?.addresses ?? [];
  const entries = openEntries(indexFolder(directory));
  return { directory, lastReserved, entries, addressesOf: (owner) => verified(directory, owner, found) };
}

/** The index is stale from now on, until `markValid()`. */
export function markStale({ directory }: OwnerIndex): void {
  attempt(() => overwriteText(statePath(directory), STALE));
}

/**
 * Records the state after a change: the addresses assigned last, and all addresses of
 * the owner that has changed. If its entry cannot be written, the index stays stale.
 */
export function markValid(
  { directory, entries }: OwnerIndex,
  lastReserved: readonly string[],
  changed?: OwnedAddresses,
): void {
  attempt(() => {
    if (changed !== undefined) entries.write(changed.owner, changed.addresses);
    writeState(directory, lastReserved);
  });
}

/** The address assigned last from each set, if nothing has changed in the folder since the index was written. */
function validState(directory: string): readonly string[] | undefined {
  const [head, ...lines] = readState(directory).split("\n");
  const end = lines.indexOf(END);
  if (head !== stateHead(directory) || end < 0) return undefined;
  const lastReserved = lines.slice(0, end);
  const isSame = lastReserved.every((address, set) => (readLastReserved(directory, set) ?? "") === address);
  return isSame ? lastReserved : undefined;
}

function readState(directory: string): string {
  try {
    return readText(statePath(directory)) ?? "";
  } catch {
    // It is not a readable file: treated as if there was no index.
    return "";
  }
}

function writeState(directory: string, lastReserved: readonly string[]): void {
  overwriteText(statePath(directory), `${[stateHead(directory), ...lastReserved, END].join("\n")}\n`);
}

function stateHead(directory: string): string {
  return `${FORMAT} ${lastChangeOf(directory)}`;
}

function verified(
  directory: string,
  { containerId, ifname }: Owner,
  find: (owner: Owner) => readonly string[],
): OwnedAddresses {
  const addressesOf = (owner: Owner): OwnedAddresses => {
    const isReserved = (address: string) => {
      const recorded = readReservation(directory, address)?.owner;
      return recorded !== undefined && ownerText(recorded) === ownerText(owner);
    };
    return { owner, addresses: find(owner).filter(isReserved) };
  };
  const own = addressesOf({ containerId, ifname });
  return own.addresses.length > 0 ? own : addressesOf({ containerId });
}

function statePath(directory: string): string {
  return `${indexFolder(directory)}/${STATE}`;
}

function indexFolder(directory: string): string {
  return `${directory}/.index`;
}

function attempt(write: () => void): void {
  try {
    write();
  } catch {
    // The next call reads all files.
  }
}
