/** DEL: takes away what the attachment has. Asks neither the config nor the result: both may be missing, or wrong. */
import type { DelCall } from "../../cni/call.ts";
import { openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { ownerOf } from "./attachment.ts";
import { releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { forgetUdp } from "./udp.ts";

export async function del(call: DelCall, surroundings: Surroundings): Promise<void> {
  // Never closed: that would wait for the kernel (docs/linux.md); the end of the process does it.
  const socket = openNetlinkSocket("netfilter");
  const { id } = ownerOf(call.networkName, call);
  for (const claim of await releasePorts(socket, id)) forgetUdp(socket, claim, surroundings);
}
