/** Which running containers have host ports, from the files that their ADDs left (record-file.ts). Changes nothing. */
import type { FileFolder } from "../../linux/file-folder.ts";
import { areOfDifferentNetns, isNetnsGone, markOwnNetns } from "../../linux/netns-mark.ts";
import { readRecord } from "./read-record-file.ts";
import { ownerIdOf, type RecordedPorts } from "./record-file.ts";

/** As `network/container/interface`, of this network namespace. A file that cannot be read is skipped. */
export function runningOwners(folder: FileFolder): readonly string[] {
  if (folder.changedAt() === undefined) return [];
  const host = markOwnNetns();
  return folder.list().flatMap((name) => {
    const recorded = readOrSkip(folder, name);
    const [first] = recorded?.recordSets ?? [];
    if (first === undefined || areOfDifferentNetns(recorded?.hostNetns, host)) return [];
    return isNetnsGone(first.netns) ? [] : [first.owner.name];
  });
}

function readOrSkip(folder: FileFolder, name: string): RecordedPorts | undefined {
  const id = ownerIdOf(name);
  if (id === undefined) return undefined;
  try {
    return readRecord(folder, { name, id })?.recorded;
  } catch {
    return undefined;
  }
}
