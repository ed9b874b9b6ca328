/**
 * Writes the ports in one batch, then opens the way for 127.0.0.1 and forgets
 * UDP connections of before. A failure takes the ports away again.
 */
import type { AddCall } from "../../cni/call.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { isPortInUse } from "../../linux/port-in-use.ts";
import { ownerOf } from "./attachment.ts";
import { type Claim, formatHostPort } from "./claim.ts";
import { protocolName } from "./mapping.ts";
import { allowLoopbackSources } from "./pod-link.ts";
import { releasePorts } from "./release.ts";
import type { PortRequest } from "./request.ts";
import type { Surroundings } from "./surroundings.ts";
import { takePorts } from "./take.ts";
import { forgetUdp } from "./udp.ts";
import { type Wanted, wantedBy } from "./wanted.ts";

export async function mapPorts(call: AddCall, request: PortRequest, surroundings: Surroundings): Promise<void> {
  const wanted = wantedBy(call, request);
  for (const { mapping, reason } of wanted.unserved) {
    surroundings.warn(`Host port ${mapping.protocol} ${mapping.hostPort} is not mapped: ${reason}`);
  }
  if (wanted.holdings.length === 0) return;

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
  { holdings, loopbackLink }: Wanted,
  surroundings: Surroundings,
): Promise<void> {
  for (const claim of await takePorts(socket, holdings)) {
    const reason = "another interface of the same container has it";
    surroundings.warn(`Host port ${formatHostPort(claim)} is left as it is: ${reason}`);
  }
  if (loopbackLink !== undefined) allowLoopbackSources(loopbackLink);
  for (const { records } of holdings) {
    for (const record of records) {
      if (record.kind !== "port") continue;
      forgetUdp(socket, record.claim, surroundings);
      warnOfListener(record.claim, surroundings);
    }
  }
}

/** Allowed, as upstream allows it, but seldom meant. */
function warnOfListener(claim: Claim, surroundings: Surroundings): void {
  const protocol = protocolName(claim.protocol);
  if (protocol !== "tcp" && protocol !== "udp") return;
  if (!isPortInUse(protocol, claim.hostAddress, claim.hostPort)) return;
  const state = "a process of the host listens on it too, and gets no new clients as long as the container has it";
  surroundings.warn(`Host port ${formatHostPort(claim)}: ${state}`);
}
