/**
 * What ADD must have left, told from its result: for CHECK, which knows nothing
 * else of it. Other plugins of the chain may have added to the result since;
 * what is not of our interface is not ours to judge. Pure.
 */
import type { CniInterface, CniResult } from "../cni/result.ts";
import { PluginError } from "../errors.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatMac, parseMac } from "../ip/mac.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { wantedRoute } from "./routes.ts";
import { gatewayOf, planWiring, type WiringPlan } from "./wiring-plan.ts";
import type { Workload } from "./workload.ts";

export interface Expected {
  readonly plan: WiringPlan;
  readonly addresses: readonly Address[];
  /** Where the result itself cannot be this attachment's. */
  readonly differences: readonly string[];
}

export interface CheckedSettings {
  readonly netns: string;
  readonly queues: number;
  readonly allowIpForwarding: boolean;
}

export function expectedWiring(workload: Workload, result: CniResult, settings: CheckedSettings): Expected {
  const own = result.interfaces.find(({ name, sandbox }) => name === workload.ifname && sandbox !== undefined);
  const addresses = addressesOf(result, workload.ifname);
  const gateways = [formatAddress(gatewayOf(4)), formatAddress(gatewayOf(6))];
  const routes = result.routes.filter(({ gateway }) => gateway !== undefined && gateways.includes(gateway));
  const plan = planWiring({
    ...workload,
    addresses,
    routes: routes.map(wantedRoute),
    mtu: own?.mtu,
    queues: settings.queues,
    allowIpForwarding: settings.allowIpForwarding,
  });
  return { plan, addresses, differences: resultDifferences(workload, result, { own, settings }) };
}

function resultDifferences(
  workload: Workload,
  { interfaces, ips }: CniResult,
  { own, settings }: { readonly own: CniInterface | undefined; readonly settings: CheckedSettings },
): readonly string[] {
  const differences: string[] = [];
  const place = `interface "${workload.ifname}"`;
  if (own === undefined) differences.push(`prevResult names no ${place} in a container`);
  else if (own.sandbox !== settings.netns) {
    differences.push(`prevResult has ${place} in "${own.sandbox}", and CNI_NETNS is "${settings.netns}"`);
  }
  const mac = own?.mac === undefined ? undefined : parseMac(own.mac);
  if (mac !== undefined && formatMac(mac) !== formatMac(workload.mac)) {
    differences.push(`prevResult gives ${place} MAC ${formatMac(mac)}, which ADD never would`);
  }
  if (!interfaces.some(({ name }) => name === workload.hostInterface)) {
    differences.push(`prevResult names no host interface "${workload.hostInterface}"`);
  }
  if (ips.length === 0) differences.push("prevResult holds no address");
  return differences;
}

/** Those of our interface, and those that name none. */
function addressesOf({ ips, interfaces }: CniResult, ifname: string): readonly Address[] {
  return ips
    .filter(({ interface: index }) => index === undefined || isContainerLink(interfaces[index], ifname))
    .map(({ address }) => {
      const read = parseInterfaceAddress(address);
      if (read !== undefined) return read.address;
      throw new PluginError("decode-failure", `Cannot read prevResult: "${address}" is no address`);
    });
}

function isContainerLink(link: CniInterface | undefined, ifname: string): boolean {
  return link === undefined || (link.name === ifname && link.sandbox !== undefined);
}
