/** The interfaces whose sidecar reported to the former agent, as the policy table in the kernel says. */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { closeNetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { listElements } from "../../linux/nftables/read.ts";
import { SIDECARS } from "../../policy/render/base-chains.ts";

/** Of the network namespace of this process. Empty if there is no table, or it has no such set. */
export function readFormerSidecars(): ReadonlySet<string> {
  const socket = openNetlinkSocket("netfilter");
  try {
    return new Set(listElements(socket, POLICY_TABLE, SIDECARS).map(({ key }) => nameOf(key)));
  } finally {
    closeNetlinkSocket(socket);
  }
}

/** The kernel fills names with zeros. */
function nameOf(key: Uint8Array): string {
  const end = key.indexOf(0);
  return new TextDecoder().decode(end < 0 ? key : key.subarray(0, end));
}
