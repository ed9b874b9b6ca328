/**
 * Which addresses each container holds, kept beside the reservations so that
 * neither ADD nor DEL has to read them all:
 *
 *   <network>/.index/state           whether the index vouches for the folder
 *   <network>/.index/<id>@<ifname>   #10.1.2.3 2001:db8::2
 *
 * Only a hint. Upstream's plugin adds and removes reservations without it, so
 *  - it counts only while the folder has not changed since `state` was written:
 *    same time of last change, same last reserved addresses (the time alone
 *    would not show two changes within one tick of the kernel's clock);
 *  - an address it names counts only when the reservation names the owner;
 *  - it is called in doubt before a change and vouched for after it, so that
 *    whoever dies in between leaves it in doubt.
 * In doubt, the folder is walked and the index written anew. Upstream's walk
 * comes by these files too: the leading # keeps it from taking one for a
 * reservation. Failing to write the index fails nothing.
 */
import { interfaceNameProblem, nameProblem } from "../../cni/names.ts";
import { lastChangeOf, overwriteText, readText, removeFile, writeText } from "../../linux/files.ts";
import { type Owner, ownerText, readLastReserved, readReservation } from "./store.ts";
import { namesIn, walk } from "./walk.ts";

export interface OwnerIndex {
  readonly directory: string;
  /** What each set gave last, as its file says; empty where it has none. */
  readonly lastReserved: readonly string[];
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
/** What a file name may hold; longer owners are kept under a hash. */
const LONGEST_NAME = 255;

/** Wants the lock held, as does every function here. */
export function openIndex(directory: string): OwnerIndex {
  const lastReserved = vouchedState(directory);
  if (lastReserved === undefined) return rebuildIndex(directory);
  return { directory, lastReserved, holdingOf: (owner) => verified(directory, owner, readEntry) };
}

/** Walks the folder and writes down what it finds. */
export function rebuildIndex(directory: string): OwnerIndex {
  const { reservations, lastReservedSets } = walk(directory);
  const entries = new Map<string, string[]>();
  for (const { address, owner } of reservations) {
    const name = owner === undefined ? undefined : entryName(owner);
    if (name !== undefined) entries.set(name, [...(entries.get(name) ?? []), address]);
  }
  const count = Math.max(-1, ...lastReservedSets) + 1;
  const lastReserved = Array.from({ length: count }, (_, set) => readLastReserved(directory, set) ?? "");
  attempt(() => {
    writeEntries(directory, entries);
    writeState(directory, lastReserved);
  });
  const found = (_: string, owner: Owner) => entries.get(entryName(owner) ?? "") ?? [];
  return { directory, lastReserved, holdingOf: (owner) => verified(directory, owner, found) };
}

/** From here on the index is in doubt, until `vouchFor()`. */
export function doubt({ directory }: OwnerIndex): void {
  attempt(() => overwriteText(indexPath(directory, STATE), IN_DOUBT));
}

export function recordOwner({ directory }: OwnerIndex, owner: Owner, addresses: readonly string[]): void {
  const name = entryName(owner);
  if (name !== undefined) attempt(() => writeText(indexPath(directory, name), entryText(addresses)));
}

export function forgetHolding({ directory }: OwnerIndex, { owner }: Holding): void {
  const name = entryName(owner);
  if (name !== undefined) attempt(() => void removeFile(indexPath(directory, name)));
}

/** The index says again what the folder holds, after a change that gave these addresses last. */
export function vouchFor({ directory }: OwnerIndex, lastReserved: readonly string[]): void {
  attempt(() => writeState(directory, lastReserved));
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
    return readText(indexPath(directory, STATE)) ?? "";
  } catch {
    // Something else stands in its place: no index, then.
    return "";
  }
}

function writeState(directory: string, lastReserved: readonly string[]): void {
  overwriteText(indexPath(directory, STATE), `${[stateHead(directory), ...lastReserved, END].join("\n")}\n`);
}

function stateHead(directory: string): string {
  return `${FORMAT} ${lastChangeOf(directory)}`;
}

function verified(
  directory: string,
  { containerId, ifname }: Owner,
  find: (directory: string, owner: Owner) => readonly string[],
): Holding {
  const holding = (owner: Owner): Holding => {
    const isHolder = (address: string) => {
      const holder = readReservation(directory, address)?.owner;
      return holder !== undefined && ownerText(holder) === ownerText(owner);
    };
    return { owner, addresses: find(directory, owner).filter(isHolder) };
  };
  const own = holding({ containerId, ifname });
  return own.addresses.length > 0 ? own : holding({ containerId });
}

function readEntry(directory: string, owner: Owner): readonly string[] {
  const name = entryName(owner);
  const entry = name === undefined ? undefined : readText(indexPath(directory, name));
  return entry?.startsWith("#") ? entry.slice(1).split(" ") : [];
}

function writeEntries(directory: string, entries: ReadonlyMap<string, readonly string[]>): void {
  const { mkdirSync }: typeof import("node:fs") = require("node:fs");
  const folder = indexPath(directory, "");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, addresses] of entries) {
    const path = indexPath(directory, name);
    if (readText(path) !== entryText(addresses)) writeText(path, entryText(addresses));
  }
  for (const name of namesIn(folder)) {
    if (name !== STATE && !entries.has(name)) removeFile(indexPath(directory, name));
  }
}

function entryText(addresses: readonly string[]): string {
  return `#${addresses.join(" ")}`;
}

/** `undefined` for what no call can name, and no path should hold. */
function entryName({ containerId, ifname = "" }: Owner): string | undefined {
  if (nameProblem(containerId) !== undefined) return undefined;
  if (ifname !== "" && interfaceNameProblem(ifname) !== undefined) return undefined;
  const name = `${containerId}@${ifname}`;
  return name.length > LONGEST_NAME ? `~${Bun.hash(name)}` : name;
}

function indexPath(directory: string, name: string): string {
  return `${directory}/.index/${name}`;
}

function attempt(write: () => void): void {
  try {
    write();
  } catch {
    // The next call walks the folder.
  }
}
