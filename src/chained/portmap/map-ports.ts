/**
 * Writes the ports in one batch, then allows packets from 127.0.0.1 and deletes
 * tracked UDP connections of earlier owners. A failure removes the ports again.
 */
import type { AddCall } from "../../cni/call.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import type { Address, Family } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { markOwnNetns } from "../../linux/netns-mark.ts";
import { isPortInUse } from "../../linux/port-in-use.ts";
import { assignPorts } from "./assign-ports.ts";
import { type Claim, formatHostPort, isForAnyAddress, portFields } from "./claim.ts";
import { loopbackLinkOf, serveLoopback, takeBackLoopbackSources } from "./loopback-sources.ts";
import { protocolName } from "./mapping.ts";
import { ownerOf } from "./port-owner.ts";
import { claimsIn, type PortRecord, podAddressOf, type RecordSet } from "./port-records.ts";
import { hostPortsFolder, type RecordedPorts, removeRecordFile, writeRecordFile } from "./record-file.ts";
import { releasePorts } from "./release.ts";
import type { PortRequest } from "./request.ts";
import { type RequestedRecords, requestedRecords } from "./requested-records.ts";
import type { Surroundings } from "./surroundings.ts";
import { LOOPBACK } from "./table.ts";
import { forgetUdp } from "./udp.ts";

export async function mapPorts(call: AddCall, request: PortRequest, surroundings: Surroundings): Promise<void> {
  const wanted = requestedRecords(call, request);
  for (const { mapping, reason } of wanted.unserved) {
    surroundings.log.warning(`Host port ${mapping.protocol} ${mapping.hostPort} is not mapped: ${reason}`);
  }
  const { id } = ownerOf(call.networkName, call);
  const netfilter = await surroundings.loadNetfilter();
  await netfilter.withSocket(async (socket) => {
    try {
      await writePorts(socket, wanted, { id, containerId: call.containerId, ...surroundings });
    } catch (failure) {
      for (const undo of [
        () => removeRecordFile(surroundings.runDirectory, id),
        async () => takeBackLoopbackSources(socket, await releasePorts(socket, id)),
      ]) {
        try {
          await undo();
        } catch (left) {
          surroundings.log.warning(describeFailure(left));
        }
      }
      throw failure;
    }
  });
  if (wanted.recordSets.length > 0) surroundings.log.changed(portFields(wanted.recordSets.flatMap(claimsIn)));
}

async function writePorts(
  socket: NetlinkSocket,
  { recordSets, loopbackLink }: RequestedRecords,
  { id, containerId, ...surroundings }: Surroundings & { readonly id: Uint8Array; readonly containerId: string },
): Promise<void> {
  const heard = await heardOnHost(recordSets, containerId);
  const judged = recordSets.map((recordSet) => leaveLoopbackToListeners(recordSet, heard));
  const warn = (message: string) => surroundings.log.warning(message);
  const loopback = loopbackLink && loopbackLinkOf(socket, loopbackLink, warn);
  const hostNetns = markOwnNetns();
  await recordPorts({ recordSets: judged, loopback, hostNetns }, { id, ...surroundings });
  const leftToSibling = await assignPorts(socket, judged);
  const assigned = leftToSibling.length === 0 ? judged : judged.flatMap((each) => withoutClaims(each, leftToSibling));
  if (assigned !== judged) await recordPorts({ recordSets: assigned, loopback, hostNetns }, { id, ...surroundings });
  for (const claim of leftToSibling) {
    warn(`Host port ${formatHostPort(claim)} is left as it is: another interface of the same container has it`);
  }
  const released = await releasePorts(socket, id, familiesWithout(recordSets));
  takeBackLoopbackSources(socket, released);
  for (const claim of [...assigned.flatMap(claimsIn), ...released]) forgetUdp(socket, claim, warn);
  // Once for both families of a port.
  for (const port of new Set([...heard].map(formatHostPort))) warn(`Host port ${port}: ${WARNING}`);
  const pod = podAddressOf(assigned, 4);
  if (loopback !== undefined && pod !== undefined) serveLoopback(socket, { link: loopback, pod }, warn);
}

/** In which an earlier ADD of the same attachment may have had ports. */
function familiesWithout(recordSets: readonly RecordSet[]): readonly Family[] {
  return ([4, 6] as const).filter((family) => !recordSets.some((recordSet) => recordSet.family === family));
}

/** Ports without a record do not come back after a flush of the ruleset, which is no reason to refuse the container. */
async function recordPorts(
  recorded: RecordedPorts,
  { id, runDirectory, openFolder, log }: Surroundings & { readonly id: Uint8Array },
): Promise<void> {
  if (recorded.recordSets.length === 0) return removeRecordFile(runDirectory, id);
  try {
    writeRecordFile(await openFolder(hostPortsFolder(runDirectory)), recorded);
  } catch (failure) {
    removeOutdated(runDirectory, id, failure);
    log.warning(`Host ports will not come back after a flush of the ruleset: ${describeFailure(failure)}`);
  }
}

/** The record of an earlier ADD would bring back the ports of that. */
function removeOutdated(runDirectory: string, id: Uint8Array, cause: unknown): void {
  try {
    removeRecordFile(runDirectory, id);
  } catch (failure) {
    throw new PluginError("io-failure", describeFailure(failure), { details: describeFailure(cause), cause });
  }
}

/** Nothing if no port is left: sources are masqueraded only for an owner of ports. */
function withoutClaims(recordSet: RecordSet, claims: readonly Claim[]): readonly RecordSet[] {
  const records = recordSet.records.filter((record) => record.kind === "source" || !claims.includes(record.claim));
  return records.some(({ kind }) => kind === "port") ? [{ ...recordSet, records }] : [];
}

/** Allowed, as upstream does, but rarely intended. */
const WARNING =
  "a process on the host also listens on it; it keeps 127.0.0.0/8 and ::1, and gets no other new clients while the container owns the port";

/** A client on the host that means that process, perhaps with a password for it, must not reach the container. */
function leaveLoopbackToListeners(recordSet: RecordSet, heard: ReadonlySet<Claim>): RecordSet {
  const records = recordSet.records.map((record): PortRecord => {
    if (record.kind !== "port" || !concernsLoopback(record.claim) || !heard.has(record.claim)) return record;
    return { kind: "port", claim: { ...record.claim, isLoopbackLeft: true } };
  });
  return { ...recordSet, records };
}

/** IPv6 never forwards `::1`. */
function concernsLoopback(claim: Claim): boolean {
  return claim.family === 4 && (isForAnyAddress(claim) || prefixContains(LOOPBACK, claim.hostAddress));
}

/** The ports on which a process of the host listens. */
async function heardOnHost(recordSets: readonly RecordSet[], containerId: string): Promise<ReadonlySet<Claim>> {
  const heard = new Set<Claim>();
  for (const { records } of recordSets) {
    for (const record of records) {
      if (record.kind === "port" && (await isHeardOnHost(record.claim, containerId))) heard.add(record.claim);
    }
  }
  return heard;
}

async function isHeardOnHost(claim: Claim, containerId: string): Promise<boolean> {
  const protocol = protocolName(claim.protocol);
  if (protocol !== "tcp" && protocol !== "udp") return false;
  if (!listenedAddresses(claim).some((address) => isPortInUse(protocol, address, claim.hostPort))) return false;
  const { isPortHeldBy } = await import("../../linux/port-holder.ts");
  return !isPortHeldBy({ protocol, port: claim.hostPort }, (words) => isMonitorOf(containerId, words));
}

/** podman's monitor of the container keeps its ports bound, so that nobody else takes them, and never replies. */
function isMonitorOf(containerId: string, [program = "", ...words]: readonly string[]): boolean {
  return /(^|\/)conmon$/.test(program) && words[words.indexOf("-c") + 1] === containerId;
}

/** A client that finds nobody at `::1` of "localhost" tries 127.0.0.1, so a listener of either family has both. */
function listenedAddresses(claim: Claim): readonly Address[] {
  const { hostAddress } = claim;
  if (!concernsLoopback(claim)) return [hostAddress];
  return [hostAddress, { family: 6, value: isForAnyAddress(claim) ? 0n : 1n }];
}
