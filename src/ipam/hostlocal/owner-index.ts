/**
 * Which addresses each container holds, kept beside the reservations so that
 * neither ADD nor DEL has to read them all:
 *
 *   <network>/.index/state   whether the index vouches for the folder
 *   <network>/.index/…       the entries (`index-buckets.ts`)
 *
 * Only a hint. Upstream's plugin adds and removes reservations without it, so
 *  - it counts only while the folder has not changed since `state` was written:
 *    same time of last change, same last reserved addresses (the time alone
 *    would not show two changes within one tick of the kernel's clock);
 *  - an address it names counts only when the reservation names the owner;
 *  - it is called in doubt before a change and vouched for after it, so that
 *    whoever dies in between leaves it in doubt.
 * In doubt, the folder is walked and the index written anew. Failing to write
 * the index fails nothing.
 */
import { lastChangeOf, overwriteText, readText } from "../../linux/files.ts";
import { type Entries, openEntries, writeEntries } from "./index-buckets.ts";
import { type Owner, ownerText, readLastReserved, readReservation, release } from "./store.ts";
import { walk } from "./walk.ts";

export interface OwnerIndex {
  readonly directory: string;
  /** What each set gave last, as its file says; empty where it has none. */
  readonly lastReserved: readonly string[];
  readonly entries: Entries;
  /** What the owner holds by container and interface; failing that, what an old file gives to the whole container. */
  holdingOf(owner: Owner): Holding;
}

export interface Holding {
  /** As the reservations name it. */
  readonly owner: Owner;
  readonly addresses: readonly string[];
}

const FORMAT = "#1";
const IN_DOUBT = "?";
/** Ends the state: behind it may stand the rest of a longer one. */
const END = ".";
const STATE = "state";

/** Wants the lock held, as does every function here. */
export function openIndex(directory: string): OwnerIndex {
  const lastReserved = vouchedState(directory);
  if (lastReserved === undefined) return rebuildIndex(directory);
  const entries = openEntries(indexFolder(directory));
  return { directory, lastReserved, entries, holdingOf: (owner) => verified(directory, owner, entries.read) };
}

/** Walks the folder and writes down what it finds. Reservations that a process died over are nobody's, and go. */
export function rebuildIndex(directory: string): OwnerIndex {
  const { reservations, lastReservedSets } = walk(directory);
  const holdings = new Map<string, { owner: Owner; addresses: string[] }>();
  for (const { address, owner } of reservations) {
    if (owner === undefined) {
      attempt(() => void release(directory, address));
      continue;
    }
    const addresses = holdings.get(ownerText(owner))?.addresses ?? [];
    holdings.set(ownerText(owner), { owner, addresses: [...addresses, address] });
  }
  const count = Math.max(-1, ...lastReservedSets) + 1;
  const lastReserved = Array.from({ length: count }, (_, set) => readLastReserved(directory, set) ?? "");
  attempt(() => {
    const { mkdirSync }: typeof import("node:fs") = require("node:fs");
    mkdirSync(indexFolder(directory), { recursive: true, mode: 0o700 });
    writeEntries(indexFolder(directory), [...holdings.values()]);
    writeState(directory, lastReserved);
  });
  const found = (owner: Owner) => holdings.get(ownerText(owner))?.addresses ?? [];
  const entries = openEntries(indexFolder(directory));
  return { directory, lastReserved, entries, holdingOf: (owner) => verified(directory, owner, found) };
}

/** From here on the index is in doubt, until `vouchFor()`. */
export function doubt({ directory }: OwnerIndex): void {
  attempt(() => overwriteText(statePath(directory), IN_DOUBT));
}

/**
 * The index says again what the folder holds, after a change that gave these
 * addresses last and left the owner with this holding. Where the entry cannot be
 * written, it stays in doubt.
 */
export function vouchFor({ directory, entries }: OwnerIndex, lastReserved: readonly string[], changed?: Holding): void {
  attempt(() => {
    if (changed !== undefined) entries.write(changed.owner, changed.addresses);
    writeState(directory, lastReserved);
  });
}

/** What each set gave last, if nothing has changed in the folder since that was written. */
function vouchedState(directory: string): readonly string[] | undefined {
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
    // Something else stands in its place: no index, then.
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
): Holding {
  const holding = (owner: Owner): Holding => {
    const isHolder = (address: string) => {
      const holder = readReservation(directory, address)?.owner;
      return holder !== undefined && ownerText(holder) === ownerText(owner);
    };
    return { owner, addresses: find(owner).filter(isHolder) };
  };
  const own = holding({ containerId, ifname });
  return own.addresses.length > 0 ? own : holding({ containerId });
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
    // The next call walks the folder.
  }
}
