/**
 * Derives what ADD must have made from its result, which is all that CHECK knows.
 * Later plugins of the chain may have added to the result: what does not concern
 * our interface is ignored. Pure.
 */
import type { CniInterface, CniResult } from "../cni/result.ts";
import { PluginError } from "../errors.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatMac, parseMac } from "../ip/mac.ts";
import { type Prefix, parseInterfaceAddress } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { ownInterface } from "./result-mac.ts";
import { wantedRoute } from "./routes.ts";
import { gatewayOf, planWiring, type WiringPlan } from "./wiring-plan.ts";
import type { Workload } from "./workload.ts";

export interface Expected {
  readonly plan: WiringPlan;
  readonly addresses: readonly Address[];
  /** Reasons why the result cannot be this attachment's. */
  readonly differences: readonly string[];
}

export interface CheckedSettings {
  readonly netns: string;
  readonly queues: number;
  readonly allowIpForwarding: boolean;
  readonly sourcePrefixes: readonly Prefix[];
}

export function expectedWiring(workload: Workload, result: CniResult, settings: CheckedSettings): Expected {
  const own = ownInterface(result, workload.ifname);
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
    sourcePrefixes: settings.sourcePrefixes,
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
  if (own === undefined) differences.push(`prevResult does not contain ${place} with a sandbox`);
  else if (own.sandbox !== settings.netns) {
    differences.push(`prevResult has ${place} in ${quoted(own.sandbox)}, but CNI_NETNS is ${quoted(settings.netns)}`);
  }
  const mac = own?.mac === undefined ? undefined : parseMac(own.mac);
  if (mac !== undefined && formatMac(mac) !== formatMac(workload.mac)) {
    differences.push(`prevResult has MAC ${formatMac(mac)} for ${place} instead of ${formatMac(workload.mac)}`);
  }
  if (!interfaces.some(({ name }) => name === workload.hostInterface)) {
    differences.push(`prevResult does not contain host interface "${workload.hostInterface}"`);
  }
  if (ips.length === 0) differences.push("prevResult does not contain an address");
  return differences;
}

/** Those of our interface, and those without an interface. */
function addressesOf({ ips, interfaces }: CniResult, ifname: string): readonly Address[] {
  return ips
    .filter(({ interface: index }) => index === undefined || isContainerLink(interfaces[index], ifname))
    .map(({ address }) => {
      const read = parseInterfaceAddress(address);
      if (read !== undefined) return read.address;
      throw new PluginError("decode-failure", `Cannot read prevResult: ${quoted(address)} is not an IP address`);
    });
}

function isContainerLink(link: CniInterface | undefined, ifname: string): boolean {
  return link === undefined || (link.name === ifname && link.sandbox !== undefined);
}
