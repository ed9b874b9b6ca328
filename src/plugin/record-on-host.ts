/**
 * What ADD records on the host (ipam/attachment-record.ts), and DEL removes. Only if endpoints are pods of the
 * orchestrator's API: in other datastores nobody but the plugin writes the endpoint. Most pods have nothing to record,
 * which costs one look at a file that does not exist.
 */
import { identity } from "../identity.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { attachmentsFolder, readAttachment, removeAttachment, writeAttachment } from "../ipam/attachment-record.ts";
import { isMarkOf } from "../ipam/link-mark.ts";
import { natsOf, sourcePrefixesOf } from "./endpoint.ts";
import type { PodFacts } from "./pod-facts.ts";
import type { Session } from "./session.ts";
import type { Workload } from "./workload.ts";

export async function recordOnHost(
  workload: Workload,
  { podFacts, addresses }: { readonly podFacts: PodFacts; readonly addresses: readonly Address[] },
  session: Session,
): Promise<void> {
  const { namespace, pod, hostInterface, mark } = workload;
  if (pod === undefined || session.settings.kind !== "orchestrator") return;
  const { floatingAddresses, sourcePrefixes, addressesWithoutIpam } = podFacts.requests;
  const isOfIpam = addressesWithoutIpam === undefined && session.config.ipam.type === identity.ipamType;
  if (isOfIpam && floatingAddresses === undefined && sourcePrefixes === undefined) {
    // Whatever an earlier container of the pod left.
    if (hasRecord(workload, session)) (await openFolder(session)).remove(hostInterface);
    return;
  }
  writeAttachment(await openFolder(session), hostInterface, {
    mark,
    pod: { namespace, name: pod },
    addresses: addresses.map(formatAddress),
    floating: [...natsOf(floatingAddresses, addresses)],
    sourcePrefixes: sourcePrefixesOf(sourcePrefixes, addresses),
  });
}

export async function forgetOnHost(workload: Workload, session: Session): Promise<void> {
  if (session.settings.kind !== "orchestrator" || !hasRecord(workload, session)) return;
  removeAttachment(await openFolder(session), workload);
}

/** For GC: records of this network whose containers are not kept. */
export async function collectOnHost(
  { network, kept }: { readonly network: string; readonly kept: ReadonlySet<string> },
  session: Session,
): Promise<void> {
  if (session.settings.kind !== "orchestrator") return;
  const folder = await openFolder(session);
  if (folder.changedAt() === undefined) return;
  for (const name of folder.list()) {
    const mark = readAttachment(folder, name)?.mark;
    if (mark !== undefined && isMarkOf(network, mark) && !kept.has(mark)) folder.remove(name);
  }
}

function hasRecord({ hostInterface }: Workload, { surroundings }: Session): boolean {
  const { runDirectory, readText } = surroundings;
  return readText(`${attachmentsFolder(runDirectory)}/${hostInterface}`) !== undefined;
}

function openFolder({ surroundings }: Session) {
  return surroundings.openFolder(attachmentsFolder(surroundings.runDirectory));
}
