/** Two hosts with one container each and a VXLAN tunnel between them, wired by hand: for tests of what follows packets. */
import { address, prefix } from "../../../test/support/ip.ts";
import type {
  ModelAddress,
  ModelForwardingEntry,
  ModelLink,
  ModelNamespace,
  ModelNeighbour,
  ModelRoute,
  ModelRule,
} from "../../kernel/model.ts";
import { NetfilterState } from "../../kernel/nftables/state.ts";
import type { Machine } from "./network.ts";

const [MAIN, LOCAL] = [254, 255];
const PERMANENT = 0x80;

export class HandMadeNamespace implements ModelNamespace {
  readonly id = 0;
  readonly links = new Map<number, ModelLink>();
  readonly addresses: ModelAddress[] = [];
  readonly routes: ModelRoute[] = [];
  readonly neighbours: ModelNeighbour[] = [];
  readonly forwarding: ModelForwardingEntry[] = [];
  readonly sysctls = new Map<string, string>();
  nftables = new NetfilterState();
  changes = 0;
  readonly rules: ModelRule[] = ([4, 6] as const).flatMap((family) => [
    { family, priority: 0, table: LOCAL },
    { family, priority: 32_766, table: MAIN },
  ]);

  addLink(link: Pick<ModelLink, "index" | "name"> & Partial<ModelLink>): ModelLink {
    const made: ModelLink = {
      ...{ mac: Uint8Array.of(2, 0, 0, 0, 0, link.index), mtu: 1500, isUp: true, group: 0, hasCarrier: true },
      ...{ transmitQueueLength: 0, transmitQueues: 1, receiveQueues: 1, operState: "up" as const },
      ...{ isCarrierChangePending: false, isActive: true, isIpv6Ready: true },
      ...link,
    };
    this.links.set(link.index, made);
    this.sysctls.set(`net/ipv4/conf/${link.name}/forwarding`, "1");
    return made;
  }

  addAddress(linkIndex: number, text: string): void {
    const at = address(text);
    this.changes += 1;
    this.addresses.push({ linkIndex, address: at, length: 32, scope: 0, flags: 0 });
    this.addRoute(`${text}/32`, { kind: "local", table: LOCAL, linkIndex });
  }

  addRoute(destination: string, route: Partial<ModelRoute>): void {
    this.routes.push({
      ...{ destination: prefix(destination), table: MAIN, priority: 0, kind: "unicast" as const },
      ...{ protocol: 3, scope: 0, isOnLink: false },
      ...route,
    });
  }

  addNeighbour(linkIndex: number, text: string, mac: Uint8Array): void {
    this.neighbours.push({ linkIndex, address: address(text), mac, state: PERMANENT });
  }
}

export interface HandMadeHost extends Machine {
  readonly root: HandMadeNamespace;
  readonly container: HandMadeNamespace;
}

const HOST_MAC = Uint8Array.of(0xee, 0xee, 0xee, 0xee, 0xee, 0xee);
const GATEWAY = "169.254.1.1";

/** Host N has 192.0.2.N, its container 10.0.N.5, and its tunnel 10.0.N.0. Their blocks are 10.0.N.0/24. */
export function handMadeHosts(): readonly [HandMadeHost, HandMadeHost] {
  return [hostOf(1, 2), hostOf(2, 1)];
}

function hostOf(own: number, other: number): HandMadeHost {
  const [root, container] = [new HandMadeNamespace(), new HandMadeNamespace()];
  const tunnelMac = (number: number) => Uint8Array.of(0x66, 0, 0, 0, 0, number);
  root.addLink({ index: 2, name: "eth0" });
  root.addAddress(2, `192.0.2.${own}`);
  root.addRoute("192.0.2.0/24", { linkIndex: 2 });

  const ends = { veth: 3, eth0: 2 };
  root.addLink({
    ...{ index: ends.veth, name: `vend${own}`, kind: "veth", mac: HOST_MAC },
    peer: { namespace: container, index: ends.eth0 },
  });
  const inside = container.addLink({
    ...{ index: ends.eth0, name: "eth0", kind: "veth", peer: { namespace: root, index: ends.veth } },
  });
  container.addAddress(ends.eth0, `10.0.${own}.5`);
  container.addRoute("0.0.0.0/0", { linkIndex: ends.eth0, gateway: address(GATEWAY) });
  container.addNeighbour(ends.eth0, GATEWAY, HOST_MAC);
  root.addRoute(`10.0.${own}.5/32`, { linkIndex: ends.veth });
  root.addNeighbour(ends.veth, `10.0.${own}.5`, inside.mac);
  root.sysctls.set(`net/ipv4/conf/vend${own}/rp_filter`, "1");

  const vxlan = { id: 4096, family: 4, local: address(`192.0.2.${own}`), port: 4789, learns: false } as const;
  root.addLink({ index: 4, name: "vxlan.vend", kind: "vxlan", mac: tunnelMac(own), vxlan });
  root.addAddress(4, `10.0.${own}.0`);
  root.addRoute(`10.0.${other}.0/24`, { linkIndex: 4, gateway: address(`10.0.${other}.0`), isOnLink: true });
  root.addNeighbour(4, `10.0.${other}.0`, tunnelMac(other));
  root.forwarding.push({ linkIndex: 4, mac: tunnelMac(other), remote: address(`192.0.2.${other}`), state: PERMANENT });
  return { name: `node-${own}`, segment: "one", root, container };
}
