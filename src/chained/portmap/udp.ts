/** UDP has no end of a connection: a client that keeps its port would stay with the pod, or with the host, of before. */
import { forgetConnections } from "../../linux/conntrack.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { type Claim, formatHostPort, isForAnyAddress } from "./claim.ts";
import { protocolNumber } from "./mapping.ts";

/** After the ports changed. A failure costs a warning: the ports are right, only old clients lag behind. */
export function forgetUdp(socket: NetlinkSocket, claim: Claim, warn: (message: string) => void): void {
  const { family, protocol, hostAddress, hostPort } = claim;
  if (protocol !== protocolNumber("udp")) return;
  const destination = isForAnyAddress(claim) ? {} : { destination: hostAddress };
  try {
    forgetConnections(socket, [{ family, protocol, destinationPort: hostPort, ...destination }]);
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    warn(`Clients of ${formatHostPort(claim)} may still reach the previous container: ${reason}`);
  }
}
