/**
 * What an ADD assigned, recorded on its host: it outlives the table, which another program may flush with the whole
 * ruleset. restore-ports.ts writes the ports of it again, in the same network namespace of the host: programs in others
 * may share the folder.
 *
 *   <run directory>/host-ports/<owner in hex>
 *
 * ADD writes the file before the ports, and whoever releases them removes it first: a restore that meets the other half
 * of either finds out from the file. It is gone after a reboot, as containers and tables are.
 */
import { formatAddress } from "../../ip/address.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import { closeFile, openToRead, removeFile } from "../../linux/files.ts";
import type { LoopbackLink } from "./loopback-sources.ts";
import type { PortRecord, RecordSet } from "./port-records.ts";

export interface RecordedPorts {
  /** Of one owner, at least one. */
  readonly recordSets: readonly RecordSet[];
  /** On which packets from 127.0.0.1 are allowed for them; absent if they are not served there. */
  readonly loopback: LoopbackLink | undefined;
  /** The namespace that has the ports: see netns-mark.ts. A former release did not record it. */
  readonly hostNetns: string | undefined;
}

export function hostPortsFolder(runDirectory: string): string {
  return `${runDirectory}/host-ports`;
}

export function recordFileName(id: Uint8Array): string {
  return id.toHex();
}

/** `undefined` for a file that is not a record, such as an unfinished one. */
export function ownerIdOf(fileName: string): Uint8Array | undefined {
  return /^[0-9a-f]{32}$/.test(fileName) ? Uint8Array.fromHex(fileName) : undefined;
}

export function writeRecordFile(folder: Pick<FileFolder, "write">, recorded: RecordedPorts): void {
  const { recordSets, loopback, hostNetns } = recorded;
  const [first] = recordSets;
  if (first === undefined) return;
  const records = recordSets.flatMap((recordSet) => recordSet.records.map(textsOf));
  const file = { owner: first.owner.name, netns: first.netns, hostNetns, records, loopback };
  folder.write(recordFileName(first.owner.id), `${JSON.stringify(file)}\n`);
}

/** Most owners have none: that is not an error on a file system that cannot be written either. Without `node:fs`, for every DEL. */
export function removeRecordFile(runDirectory: string, id: Uint8Array): void {
  const path = `${hostPortsFolder(runDirectory)}/${recordFileName(id)}`;
  try {
    removeFile(path);
  } catch (failure) {
    if (!isAbsent(path)) throw failure;
  }
}

/** A file that cannot be looked at may be there. */
function isAbsent(path: string): boolean {
  try {
    const file = openToRead(path);
    if (file !== undefined) closeFile(file);
    return file === undefined;
  } catch {
    return false;
  }
}

function textsOf(record: PortRecord) {
  if (record.kind === "source") {
    const { source, length, podAddress } = record.masqueraded;
    return { kind: "source", source: formatAddress(source), length, podAddress: formatAddress(podAddress) };
  }
  const { family, hostAddress, podAddress, ...numbers } = record.claim;
  return {
    kind: "port",
    ...numbers,
    hostAddress: formatAddress(hostAddress),
    podAddress: formatAddress(podAddress),
  };
}
