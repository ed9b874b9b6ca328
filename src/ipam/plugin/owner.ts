/**
 * Who an attachment is to the allocator.
 *
 * The handle is `<network>.<container>`, as every tool that reads the datastore
 * expects. Two interfaces of one container share it and differ in the interface
 * kept with each allocation.
 */
import type { Owner } from "../block.ts";

export function ownerOf(call: {
  readonly networkName: string;
  readonly containerId: string;
  readonly ifname: string;
}): Owner {
  const { networkName, containerId, ifname } = call;
  const handle = `${networkName}.${containerId}`;
  return ifname === "" ? { handle, network: networkName } : { handle, network: networkName, interface: ifname };
}
