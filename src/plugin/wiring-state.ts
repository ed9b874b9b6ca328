/** Reads what the kernel has in the places that a wiring plan concerns, for CHECK. */
import type { Sysctls } from "../linux/host-kernel.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { type KnownAddress, listAddresses } from "../linux/rtnetlink/address.ts";
import { findLink, type Link } from "../linux/rtnetlink/link.ts";
import { type KnownNeighbour, listNeighbours } from "../linux/rtnetlink/neighbour.ts";
import { listRoutes, type Route } from "../linux/rtnetlink/route.ts";
import type { Sandbox } from "./sandbox.ts";
import type { PlannedSysctl, WiringPlan } from "./wiring-plan.ts";

export interface SideState {
  /** Absent: there is no such link, and nothing else was read. */
  readonly link?: Link;
  readonly addresses: readonly KnownAddress[];
  readonly neighbours: readonly KnownNeighbour[];
  readonly routes: readonly Route[];
  /** By name; `undefined` if the kernel has no such sysctl. */
  readonly sysctls: Readonly<Record<string, string | undefined>>;
}

export interface WiringState {
  readonly host: SideState;
  readonly container: SideState;
}

export function readWiring(plan: WiringPlan, { kernel, host, container, netns }: Sandbox): WiringState {
  return {
    host: readSide(host, plan.host.name, () => readSysctls(kernel, plan.host.sysctls)),
    container: readSide(container, plan.container.name, () =>
      kernel.withSysctlsOf(netns, (inside) => readSysctls(inside, plan.container.sysctls)),
    ),
  };
}

function readSide(socket: NetlinkSocket, name: string, sysctls: () => SideState["sysctls"]): SideState {
  const link = findLink(socket, name);
  if (link === undefined) return { addresses: [], neighbours: [], routes: [], sysctls: {} };
  const onLink = (each: { readonly linkIndex?: number }) => each.linkIndex === link.index;
  return {
    link,
    addresses: listAddresses(socket).filter(onLink),
    neighbours: listNeighbours(socket).filter(onLink),
    routes: listRoutes(socket).filter(onLink),
    sysctls: sysctls(),
  };
}

function readSysctls(kernel: Sysctls, sysctls: readonly PlannedSysctl[]): SideState["sysctls"] {
  return Object.fromEntries(sysctls.map(({ name }) => [name, kernel.readSysctl(name)]));
}
