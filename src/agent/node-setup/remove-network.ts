/**
 * Removes from the kernel what the agent and the plugins have set up for all pods: tunnels, routes, nftables tables. Pods
 * that still run need them, so they stay as long as there is one.
 */
import { type Identity, identity } from "../../identity.ts";
import { isKernelError, type KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { tryCommit } from "../../linux/nftables/commit.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";
import { deleteAddress } from "../../linux/rtnetlink/address.ts";
import { changeLink, deleteLink, type Link } from "../../linux/rtnetlink/link.ts";
import { deleteRoute, ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";
import type { NetworkKernel } from "../node-routes/kernel-network.ts";
import { isOwnIpip } from "../node-routes/tunnel-device.ts";

const IPIP_DEVICE = "tunl0";

/** Of our plugin: the links of pods that still run. */
export function podLinks(kernel: Pick<NetworkKernel, "addresses">): readonly string[] {
  const { links } = kernel.addresses();
  return links.map(({ name }) => name).filter((name) => name.startsWith(identity.interfacePrefix));
}

/** `protocols`: those of the routes to remove. Returns why something could not be removed. */
export function removeNetwork(kernel: NetworkKernel, protocols: readonly number[]): readonly string[] {
  const { links, addresses } = kernel.addresses();
  const ofName = (name: string) => links.filter((link) => link.name === name);
  const vxlan = [identity.vxlanDevice, identity.vxlanDeviceIpv6].flatMap(ofName).filter(({ kind }) => kind === "vxlan");
  const routes = kernel.routes().filter(({ protocol }) => protocols.includes(protocol ?? ROUTE_PROTOCOL.boot));
  // The module of IPIP has made the device, and it cannot be deleted: what nothing guards any more is down.
  const closed = ofName(IPIP_DEVICE).filter(isOwnIpip);
  const ipip = ofName(IPIP_DEVICE).flatMap((link: Link) =>
    addresses.filter(({ linkIndex }) => linkIndex === link.index),
  );
  const refusals = [
    ...attempt(kernel, routes.map(deleteRoute)),
    ...attempt(kernel, ipip.filter(({ scope }) => scope === "universe").map(deleteAddress)),
    ...attempt(kernel, vxlan.map(deleteLink)),
    ...attempt(
      kernel,
      closed.map((link) => changeLink(link, { state: "down", alias: "" })),
    ),
  ];
  return refusals.map(({ message }) => message);
}

/** What is already gone is not a failure. */
function attempt(kernel: NetworkKernel, requests: readonly NetlinkRequest[]): readonly KernelError[] {
  if (requests.length === 0) return [];
  return kernel
    .attempt(requests)
    .filter((refusal) => refusal !== undefined)
    .filter((refusal) => !isKernelError(refusal, "ESRCH", "ENODEV", "EADDRNOTAVAIL"));
}

/** Every table that the product has. */
export function ownTables(names: Identity): readonly TableReference[] {
  const { policyTable, natTable, floatingTable, guardTable, tunnelTable, bgpTable, hostPortTable } = names;
  const inet = [policyTable, natTable, floatingTable, guardTable, tunnelTable, bgpTable];
  return [
    ...inet.map((name): TableReference => ({ family: "inet", name })),
    ...(["ip", "ip6"] as const).map((family) => ({ family, name: hostPortTable })),
  ];
}

/** Returns why one could not be removed. */
export function removeTables(socket: NetlinkSocket): readonly string[] {
  return ownTables(identity)
    .flatMap((table) => tryCommit(socket, [{ kind: "delete-table", table }]))
    .filter(({ error }) => !isKernelError(error, "ENOENT", "EAFNOSUPPORT"))
    .map(({ error }) => error.message);
}
