/**
 * Writes the ports in one batch, then allows packets from 127.0.0.1 and deletes
 * tracked UDP connections of earlier owners. A failure removes the ports again.
 */
import type { AddCall } from "../../cni/call.ts";
import type { Address } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { isPortInUse } from "../../linux/port-in-use.ts";
import { quoted } from "../../quote.ts";
import { assignPorts } from "./assign-ports.ts";
import { type Claim, formatHostPort, isForAnyAddress, portFields } from "./claim.ts";
import {
  allowLoopbackSources,
  BRIDGE_NETFILTER,
  isLoopbackUnguarded,
  takeBackLoopbackSources,
} from "./loopback-sources.ts";
import { protocolName } from "./mapping.ts";
import type { PodLink } from "./masqueraded-sources.ts";
import { ownerOf } from "./port-owner.ts";
import type { PortRecord, RecordSet } from "./port-records.ts";
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
  if (wanted.recordSets.length === 0) return;

  const netfilter = await surroundings.loadNetfilter();
  await netfilter.withSocket(async (socket) => {
    try {
      await writePorts(socket, wanted, { containerId: call.containerId, ...surroundings });
    } catch (failure) {
      takeBackLoopbackSources(socket, await releasePorts(socket, ownerOf(call.networkName, call).id));
      throw failure;
    }
  });
  const claims = wanted.recordSets.flatMap(({ records }) =>
    records.flatMap((record) => (record.kind === "port" ? record.claim : [])),
  );
  surroundings.log.changed(portFields(claims));
}

async function writePorts(
  socket: NetlinkSocket,
  { recordSets, loopbackLink }: RequestedRecords,
  { containerId, ...surroundings }: Surroundings & { readonly containerId: string },
): Promise<void> {
  const heard = await heardOnHost(recordSets, containerId);
  const judged = recordSets.map((recordSet) => leaveLoopbackToListeners(recordSet, heard));
  for (const claim of await assignPorts(socket, judged)) {
    const reason = "another interface of the same container has it";
    surroundings.log.warning(`Host port ${formatHostPort(claim)} is left as it is: ${reason}`);
  }
  const claims = judged.flatMap(({ records }) => records.flatMap((each) => (each.kind === "port" ? [each.claim] : [])));
  for (const claim of claims) forgetUdp(socket, claim, surroundings);
  // Once for both families of a port.
  for (const port of new Set([...heard].map(formatHostPort))) {
    surroundings.log.warning(`Host port ${port}: ${WARNING}`);
  }
  for (const { family, records } of judged) {
    const pod = records.find((record) => record.kind === "port")?.claim.podAddress;
    if (family === 4 && loopbackLink !== undefined && pod !== undefined) {
      serveLoopback(socket, { link: loopbackLink, pod }, surroundings);
    }
  }
}

/** Rather no service on 127.0.0.1 than one that would open the host's loopback to the pod. */
function serveLoopback(
  socket: NetlinkSocket,
  { link, pod }: { readonly link: PodLink; readonly pod: Address },
  { log }: Surroundings,
): void {
  if (isLoopbackUnguarded(link)) {
    log.warning(`Host ports of the container are not served on 127.0.0.1: ${unguardedReason(link)}`);
    return;
  }
  try {
    allowLoopbackSources(socket, link, pod);
  } catch (failure) {
    if (!(failure instanceof KernelError)) throw failure;
    log.warning(`Host ports of the container are not served on 127.0.0.1: ${failure.message}`);
  }
}

function unguardedReason({ name }: PodLink): string {
  const setting = BRIDGE_NETFILTER.replaceAll("/", ".");
  return `with ${setting}=1 the host's loopback cannot be guarded on bridge ${quoted(name)}; clients on the host can use its other addresses`;
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
