/** Which running containers have host ports, from the files that their ADDs left (record-file.ts). Changes nothing. */
import type { FileFolder } from "../../linux/file-folder.ts";
import { areOfDifferentNetns, isNetnsGone, markOwnNetns } from "../../linux/netns-mark.ts";
import type { Claim } from "./claim.ts";
import type { Owner } from "./port-owner.ts";
import { claimsIn } from "./port-records.ts";
import { readRecord } from "./read-record-file.ts";
import { ownerIdOf } from "./record-file.ts";

export interface RunningOwner {
  readonly owner: Owner;
  readonly ports: readonly Claim[];
}

export interface RunningOwners {
  /** Those of this network namespace. */
  readonly owners: readonly RunningOwner[];
  /** Paths of records that cannot be read: their containers may run. */
  readonly unreadable: readonly string[];
}

export function runningOwners(folder: FileFolder): RunningOwners {
  if (folder.changedAt() === undefined) return { owners: [], unreadable: [] };
  const host = markOwnNetns();
  const found = folder.list().map((name) => ownerIn(folder, name, host));
  return {
    owners: found.flatMap(({ running }) => running ?? []),
    unreadable: found.flatMap(({ unreadable }) => unreadable ?? []),
  };
}

interface FoundOwner {
  readonly running?: RunningOwner;
  readonly unreadable?: string;
}

function ownerIn(folder: FileFolder, name: string, host: string): FoundOwner {
  const id = ownerIdOf(name);
  if (id === undefined) return {};
  try {
    const { recordSets = [], hostNetns } = readRecord(folder, { name, id })?.recorded ?? {};
    const [first] = recordSets;
    if (first === undefined || areOfDifferentNetns(hostNetns, host) || isNetnsGone(first.netns)) return {};
    return { running: { owner: first.owner, ports: recordSets.flatMap(claimsIn) } };
  } catch {
    return { unreadable: `${folder.path}/${name}` };
  }
}
