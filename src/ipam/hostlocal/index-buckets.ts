/**
 * The entries of the index, spread over a fixed number of small files:
 *
 *   <network>/.index/1f    #1
 *                          c1@eth0 10.1.2.3 2001:db8::2
 *                          c9@eth0 10.1.2.9
 *                          .
 *
 * A file for each container would be simpler but slower: creating and removing
 * one costs a file system more than the rest of an ADD. These are created once and
 * overwritten in place; what follows the dot is the rest of a longer text.
 * Upstream's plugin reads them too: the leading # keeps it from mistaking one for
 * a reservation.
 */
import { overwriteText, readText } from "../../linux/files.ts";
import type { Owner } from "./store.ts";

const BUCKETS = 64;
const HEAD = "#1";
const END = ".";

export interface Entries {
  /** The owner's addresses according to the index alone. */
  read(owner: Owner): readonly string[];
  /** Replaces the owner's entry; removes it if there are no addresses. */
  write(owner: Owner, addresses: readonly string[]): void;
}

/** Valid while the lock is held: nobody else writes the files, and no file is read twice. */
export function openEntries(folder: string): Entries {
  const known = new Map<string, readonly string[]>();
  const linesOf = (path: string) => {
    const lines = known.get(path) ?? readBucket(path);
    known.set(path, lines);
    return lines;
  };
  return {
    read(owner) {
      const key = keyOf(owner);
      const entry = linesOf(bucketPath(folder, key)).find((line) => isEntryOf(line, key));
      return entry === undefined ? [] : entry.slice(key.length + 1).split(" ");
    },
    write(owner, addresses) {
      const key = keyOf(owner);
      const path = bucketPath(folder, key);
      const others = linesOf(path).filter((line) => !isEntryOf(line, key));
      known.delete(path);
      writeBucket(path, addresses.length === 0 ? others : [...others, entryLine(key, addresses)]);
    },
  };
}

/** Replaces all entries. */
export function writeEntries(folder: string, all: readonly { owner: Owner; addresses: readonly string[] }[]): void {
  const buckets = new Map<string, string[]>();
  for (const { owner, addresses } of all) {
    const key = keyOf(owner);
    // No call can have such an owner, and its line could not be read back.
    if (/\s/.test(key)) continue;
    const path = bucketPath(folder, key);
    buckets.set(path, [...(buckets.get(path) ?? []), entryLine(key, addresses)]);
  }
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    const path = `${folder}/${bucketName(bucket)}`;
    const lines = buckets.get(path) ?? [];
    if (lines.length > 0 || readText(path) !== undefined) writeBucket(path, lines);
  }
}

function keyOf({ containerId, ifname = "" }: Owner): string {
  return `${containerId}@${ifname}`;
}

/** A checksum that never changes: with another hash, entries would be looked up in the wrong file. */
function bucketPath(folder: string, key: string): string {
  return `${folder}/${bucketName(Bun.hash.crc32(key) % BUCKETS)}`;
}

function bucketName(bucket: number): string {
  return bucket.toString(16).padStart(2, "0");
}

function isEntryOf(line: string, key: string): boolean {
  return line.startsWith(key) && line[key.length] === " ";
}

function entryLine(key: string, addresses: readonly string[]): string {
  return `${key} ${addresses.join(" ")}`;
}

function readBucket(path: string): readonly string[] {
  const [head, ...lines] = (readText(path) ?? "").split("\n");
  const end = lines.indexOf(END);
  return head === HEAD && end >= 0 ? lines.slice(0, end) : [];
}

function writeBucket(path: string, lines: readonly string[]): void {
  overwriteText(path, `${[HEAD, ...lines, END].join("\n")}\n`);
}
