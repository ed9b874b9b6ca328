/**
 * Who an attachment is to the allocator: `<network>.<container>`, as every tool
 * that reads the datastore expects. CNI_IFNAME is not looked at: a plugin that
 * asks for addresses by a process of its own gets one set for each container,
 * and gives it back whatever the interface is called by then.
 */
import type { Owner } from "../block.ts";

export function ownerOf({
  networkName,
  containerId,
}: {
  readonly networkName: string;
  readonly containerId: string;
}): Owner {
  return { handle: `${networkName}.${containerId}`, network: networkName };
}
