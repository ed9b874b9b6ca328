/** What the configuration of BIRD needs to know about this product. */
import { identity } from "../../identity.ts";
import { ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";
import type { BirdSettings } from "../../routing/bird/render.ts";

/** Interfaces whose networks are not the host's: of pods, of tunnels, of service addresses. */
const OWN_INTERFACES = [
  `${identity.interfacePrefix}*`,
  identity.vxlanDevice,
  identity.vxlanDeviceIpv6,
  "tunl0",
  "kube-ipvs*",
  "nodelocaldns",
];

export const BIRD_SETTINGS: BirdSettings = {
  logFile: `${identity.logDirectory}/bird/bird.log`,
  ownInterfaces: OWN_INTERFACES,
  agentProtocol: ROUTE_PROTOCOL.own,
};
