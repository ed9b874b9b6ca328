/**
 * Writes the ports in one batch, then allows packets from 127.0.0.1 and deletes
 * tracked UDP connections of earlier owners. A failure removes the ports again.
 */
import type { AddCall } from "../../cni/call.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { isPortInUse } from "../../linux/port-in-use.ts";
import { assignPorts } from "./assign-ports.ts";
import { type Claim, formatHostPort } from "./claim.ts";
import { protocolName } from "./mapping.ts";
import { allowLoopbackSources } from "./pod-link.ts";
import { ownerOf } from "./port-owner.ts";
import { releasePorts } from "./release.ts";
import type { PortRequest } from "./request.ts";
import { type RequestedRecords, requestedRecords } from "./requested-records.ts";
import type { Surroundings } from "./surroundings.ts";
import { forgetUdp } from "./udp.ts";

export async function mapPorts(call: AddCall, request: PortRequest, surroundings: Surroundings): Promise<void> {
  const wanted = requestedRecords(call, request);
  for (const { mapping, reason } of wanted.unserved) {
    surroundings.warn(`Host port ${mapping.protocol} ${mapping.hostPort} is not mapped: ${reason}`);
  }
  if (wanted.recordSets.length === 0) return;

  const netfilter = await surroundings.loadNetfilter();
  await netfilter.withSocket(async (socket) => {
    try {
      await writePorts(socket, wanted, surroundings);
    } catch (failure) {
      await releasePorts(socket, ownerOf(call.networkName, call).id);
      throw failure;
    }
  });
}

async function writePorts(
  socket: NetlinkSocket,
  { recordSets, loopbackLink }: RequestedRecords,
  surroundings: Surroundings,
): Promise<void> {
  for (const claim of await assignPorts(socket, recordSets)) {
    const reason = "another interface of the same container has it";
    surroundings.warn(`Host port ${formatHostPort(claim)} is left as it is: ${reason}`);
  }
  if (loopbackLink !== undefined) allowLoopbackSources(loopbackLink);
  for (const { records } of recordSets) {
    for (const record of records) {
      if (record.kind !== "port") continue;
      forgetUdp(socket, record.claim, surroundings);
      warnOfListener(record.claim, surroundings);
    }
  }
}

/** Allowed, as upstream does, but rarely intended. */
function warnOfListener(claim: Claim, surroundings: Surroundings): void {
  const protocol = protocolName(claim.protocol);
  if (protocol !== "tcp" && protocol !== "udp") return;
  if (!isPortInUse(protocol, claim.hostAddress, claim.hostPort)) return;
  const state = "a process on the host also listens on it and gets no new clients while the container owns the port";
  surroundings.warn(`Host port ${formatHostPort(claim)}: ${state}`);
}
