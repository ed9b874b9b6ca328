/** Makes the tunnel devices of this host as they are planned, with their addresses. */
import { type Address, addressBits, formatAddress, isSameAddress } from "../../ip/address.ts";
import { isKernelError, type KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import { deleteAddress, ensureAddress, type KnownAddress } from "../../linux/rtnetlink/address.ts";
import { changeLink, deleteLink, type Link } from "../../linux/rtnetlink/link.ts";
import type { PlannedTunnel, RoutePlan, TunnelName } from "../../routing/plan.ts";
import { HostLinks } from "./host-links.ts";
import type { NetworkKernel } from "./kernel-network.ts";
import { deviceStep, givenAddresses, ipipAlias, isOwnIpip, TUNNEL_NAMES, TUNNELS } from "./tunnel-device.ts";

export interface DeviceMeans {
  readonly kernel: NetworkKernel;
  /** The pools that need the tunnel, for messages. */
  readonly poolsOf: (tunnel: TunnelName) => readonly string[];
  /** Whether the kernel sends wrong checksums through a VXLAN device if it leaves them to the device below. */
  readonly needsOwnChecksums: boolean;
}

export interface PreparedDevices {
  readonly devices: ReadonlyMap<TunnelName, Link>;
  readonly host: HostLinks;
  readonly problems: readonly string[];
  /** The names of devices that were created or changed. */
  readonly corrected: readonly string[];
}

export function prepareDevices(tunnels: ReadonlyMap<TunnelName, PlannedTunnel>, means: DeviceMeans): PreparedDevices {
  const { links, addresses } = means.kernel.addresses();
  const host = new HostLinks(links, addresses);
  const devices = new Map<TunnelName, Link>();
  const problems: string[] = [];
  const corrected: string[] = [];
  for (const tunnel of tunnels.values()) {
    const outcome = prepareDevice(tunnel, { ...means, host, addresses });
    if (typeof outcome === "string") {
      const pools = means.poolsOf(tunnel.name).map((pool) => `"${pool}"`);
      const needed =
        pools.length === 0 ? "" : ` that ${pools.length === 1 ? "pool" : "pools"} ${pools.join(", ")} needs`;
      problems.push(`Cannot set up the ${TUNNELS[tunnel.name].title} tunnel${needed}: ${outcome}`);
      continue;
    }
    devices.set(tunnel.name, outcome.link);
    if (outcome.isCorrected) corrected.push(TUNNELS[tunnel.name].deviceName);
  }
  return { devices, host, problems, corrected };
}

/**
 * The tunnels by which this host accepts packets: those of the plan, and those whose devices we have set up and are still
 * there: `tunl0` stays when no pool needs it any more. Of a partial plan, which does not know all nodes, its own only.
 */
export function openTunnels(
  { tunnels, isPartial }: Pick<RoutePlan, "tunnels" | "isPartial">,
  kernel: Pick<NetworkKernel, "device">,
): ReadonlySet<TunnelName> {
  return new Set(TUNNEL_NAMES.filter((name) => tunnels.has(name) || (!isPartial && isOpen(name, kernel))));
}

/** Those at which VXLAN devices of this host receive packets, or will: of the plan, and of the devices that are there. */
export function vxlanPorts(
  { tunnels }: Pick<RoutePlan, "tunnels">,
  kernel: Pick<NetworkKernel, "device">,
): readonly number[] {
  const present = TUNNEL_NAMES.map((name) => kernel.device(TUNNELS[name].deviceName)?.vxlan?.port ?? 0);
  const planned = Array.from(tunnels.values(), ({ vxlan }) => vxlan?.port ?? 0);
  return [...new Set([...present, ...planned])].filter((port) => port > 0).toSorted((left, right) => left - right);
}

function isOpen(name: TunnelName, kernel: Pick<NetworkKernel, "device">): boolean {
  const present = kernel.device(TUNNELS[name].deviceName);
  if (present === undefined || !present.link.isUp) return false;
  return TUNNELS[name].kind === "ipip" ? isOwnIpip(present.link) : present.vxlan !== undefined;
}

export interface RemovedDevices {
  /** The names of devices that are gone. */
  readonly devices: readonly string[];
  /** Of `tunl0`. */
  readonly addresses: readonly Address[];
  readonly problems: readonly string[];
}

/** Removes the devices that no pool needs any more. `tunl0` stays, without our address: it may be used by others. */
export function removeUnplanned(
  tunnels: ReadonlyMap<TunnelName, PlannedTunnel>,
  kernel: NetworkKernel,
): RemovedDevices {
  const present = TUNNEL_NAMES.filter((name) => !tunnels.has(name)).flatMap(
    (name) => kernel.device(TUNNELS[name].deviceName) ?? [],
  );
  const devices = present.filter(({ vxlan }) => vxlan !== undefined).map(({ link }) => link);
  const refusals = devices.map((link) => send(kernel, [deleteLink(link)]));
  const given = present.flatMap(({ link }) => (link.kind === "ipip" ? [removeGiven(link, kernel)] : []));
  return {
    devices: devices.filter((_, index) => refusals[index] === undefined).map(({ name }) => name),
    addresses: given.flatMap((each) => (Array.isArray(each) ? each : [])),
    problems: [...refusals, ...given].flatMap((each) => (each instanceof Error ? [each.message] : [])),
  };
}

/** The address is released, and may be that of a pod of another node by now. Returns what was removed. */
function removeGiven(link: Link, kernel: NetworkKernel): readonly Address[] | KernelError {
  if (givenAddresses(link).length === 0) return [];
  const present = formerAddresses(link, kernel.addresses().addresses);
  const refusal =
    send(kernel, present.map(deleteAddress)) ?? send(kernel, [changeLink(link, { alias: ipipAlias([]) })]);
  return refusal ?? present.map(({ address }) => address);
}

/** The addresses that an IPIP device has from us. */
function formerAddresses(link: Link, addresses: readonly KnownAddress[]): readonly KnownAddress[] {
  const given = givenAddresses(link);
  return addresses.filter(
    ({ linkIndex, address, length }) =>
      linkIndex === link.index &&
      length === addressBits(address.family) &&
      given.some((each) => isSameAddress(each, address)),
  );
}

interface PrepareMeans extends DeviceMeans {
  readonly host: HostLinks;
  readonly addresses: readonly KnownAddress[];
}

/** Returns why the device cannot be as planned. */
function prepareDevice(
  tunnel: PlannedTunnel,
  { kernel, host, addresses, needsOwnChecksums }: PrepareMeans,
): { readonly link: Link; readonly isCorrected: boolean } | string {
  const { deviceName, kind } = TUNNELS[tunnel.name];
  const underlying = host.withAddress(tunnel.local);
  if (underlying === undefined) return `no interface of this host has the address ${formatAddress(tunnel.local)}`;
  const step = deviceStep(tunnel, underlying, kernel.device(deviceName));
  if (step.kind === "problem") return step.reason;
  let refusal = send(kernel, step.requests);
  // Loading the module of IPIP creates the device, which is down: then there is nothing to create, but something to change.
  if (refusal !== undefined && isKernelError(refusal, "EEXIST")) {
    const change = deviceStep(tunnel, underlying, kernel.device(deviceName));
    if (change.kind === "requests" && !change.isNew) refusal = send(kernel, change.requests);
  }
  if (refusal !== undefined) return describeRefusal(refusal, tunnel.name);
  const link = kernel.device(deviceName)?.link;
  if (link === undefined) return `interface "${deviceName}" was removed at once`;
  if (step.isNew && kind === "vxlan" && needsOwnChecksums) kernel.turnOffChecksumOffload(deviceName);
  const wrong = addressRequests(tunnel, link, addresses);
  const refusedAddress = send(kernel, wrong);
  if (refusedAddress !== undefined) return refusedAddress.message;
  const alias = ipipAlias([tunnel.address]);
  if (kind === "ipip" && link.alias !== alias) send(kernel, [changeLink(link, { alias })]);
  return { link, isCorrected: step.requests.length + wrong.length > 0 };
}

/**
 * The new address first: a link that loses its last one loses its neighbours too. The former one goes: packets would be
 * sent from it, though it may be that of another node or pod by now. Of an IPIP device others may have addresses as well.
 */
function addressRequests(
  { name, address }: PlannedTunnel,
  link: Link,
  addresses: readonly KnownAddress[],
): readonly NetlinkRequest[] {
  const length = addressBits(address.family);
  const present = addresses.filter(({ linkIndex, scope }) => linkIndex === link.index && scope === "universe");
  const isWanted = (each: KnownAddress) => isSameAddress(each.address, address) && each.length === length;
  const ours = TUNNELS[name].kind === "vxlan" ? present : formerAddresses(link, addresses);
  return [
    ...(present.some(isWanted) ? [] : [ensureAddress({ linkIndex: link.index, address, length })]),
    ...ours.filter((each) => !isWanted(each)).map(deleteAddress),
  ];
}

function send(kernel: NetworkKernel, requests: readonly NetlinkRequest[]): KernelError | undefined {
  return requests.length === 0 ? undefined : kernel.attempt(requests).find((refusal) => refusal !== undefined);
}

function describeRefusal(refusal: KernelError, tunnel: TunnelName): string {
  const { kind, title } = TUNNELS[tunnel];
  const { message } = refusal;
  return isKernelError(refusal, "EOPNOTSUPP") ? `the kernel of this host has no ${title} (module "${kind}")` : message;
}
