/**
 * ADD: checks everything, writes the ports in one batch, then opens the way for
 * 127.0.0.1 and forgets UDP connections of before. A failure takes the ports
 * away again.
 */
import type { AddCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { ownerOf } from "./attachment.ts";
import { formatHostPort } from "./claim.ts";
import { allowLoopbackSources } from "./pod-link.ts";
import { releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { takePorts } from "./take.ts";
import { forgetUdp } from "./udp.ts";
import { type Wanted, wantedBy } from "./wanted.ts";

export async function add(call: AddCall, surroundings: Surroundings): Promise<CniResult> {
  const wanted = wantedBy(call);
  for (const { protocol, hostPort } of wanted.unserved) {
    const reason = "the container has no address of that family";
    surroundings.warn(`Host port ${protocol} ${hostPort} is not mapped: ${reason}`);
  }
  if (wanted.holdings.length === 0) return wanted.result;

  // Never closed: that would wait for the kernel (docs/linux.md); the end of the process does it.
  const socket = openNetlinkSocket("netfilter");
  try {
    await mapPorts(socket, wanted, surroundings);
  } catch (failure) {
    await releasePorts(socket, ownerOf(call.networkName, call).id);
    throw failure;
  }
  return wanted.result;
}

async function mapPorts(
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
    for (const record of records) if (record.kind === "port") forgetUdp(socket, record.claim, surroundings);
  }
}
