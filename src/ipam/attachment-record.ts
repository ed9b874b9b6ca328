/**
 * What an ADD gave a pod beside addresses of our own IPAM, recorded on its host: addresses that another IPAM plugin or an
 * annotation assigned, floating IPs, and sources beside its own addresses.
 *
 *   <run directory>/attachments/<interface of the host>
 *
 * With the orchestrator's API as the datastore the endpoint is the pod, whose annotations its users can change. This
 * file only root can write, so it is what the agent and the admin tool of the host trust. An ADD writes it if there is
 * something to record, the DEL of the same container removes it, and it is gone after a reboot, as the links are.
 */
import * as v from "valibot";
import type { FileFolder } from "../linux/file-folder.ts";
import type { WorkloadEndpointSpec } from "../model/workload-endpoint.ts";

const SCHEMA = v.object({
  mark: v.string(),
  pod: v.optional(v.object({ namespace: v.string(), name: v.string() })),
  addresses: v.array(v.string()),
  floating: v.array(v.object({ internalIP: v.string(), externalIP: v.string() })),
  sourcePrefixes: v.array(v.string()),
});

export interface AttachmentRecord {
  /** The alias of the host's link. */
  readonly mark: string;
  /** `undefined`: it was connected by a release that did not record this. */
  readonly pod: { readonly namespace: string; readonly name: string } | undefined;
  /** All addresses of the pod, without a length. */
  readonly addresses: readonly string[];
  readonly floating: NonNullable<WorkloadEndpointSpec["ipNATs"]>;
  readonly sourcePrefixes: readonly string[];
}

/** The folder of these files, in the directory that is gone after a reboot. */
export function attachmentsFolder(runDirectory: string): string {
  return `${runDirectory}/attachments`;
}

/** `undefined` if there is none, or if it cannot be read: then nothing was recorded. */
export function readAttachment(folder: Pick<FileFolder, "read">, hostInterface: string): AttachmentRecord | undefined {
  try {
    return decodeAttachment(folder.read(hostInterface));
  } catch {
    return undefined;
  }
}

/** Throws if it is not a record. */
function decodeAttachment(text: string): AttachmentRecord {
  const { pod, ...others } = v.parse(SCHEMA, JSON.parse(text));
  return { pod, ...others };
}

/** All that can be read, by the interface of the host. */
export function readAttachments(folder: FileFolder): ReadonlyMap<string, AttachmentRecord> {
  if (folder.changedAt() === undefined) return new Map();
  const records = folder.list().map((name) => [name, readAttachment(folder, name)] as const);
  return new Map(records.flatMap(([name, record]) => (record === undefined ? [] : [[name, record]])));
}

export function writeAttachment(folder: FileFolder, hostInterface: string, record: AttachmentRecord): void {
  folder.write(hostInterface, `${JSON.stringify(record)}\n`);
}

/** A newer container of the pod keeps its own. */
export function removeAttachment(
  folder: FileFolder,
  { hostInterface, mark }: { readonly hostInterface: string; readonly mark: string },
): void {
  const present = readAttachment(folder, hostInterface);
  if (present === undefined || present.mark === mark) folder.remove(hostInterface);
}
