/** The network config as host-local reads it. */
import { decodeArguments } from "../../cni/arguments.ts";
import type { JsonObject } from "../../cni/json.ts";
import type { CniRoute } from "../../cni/result.ts";
import { decodeResultShape } from "../../cni/result-shape.ts";
import type { CniVersion } from "../../cni/version.ts";
import { type Address, formatAddress, parseAddress, unmapAddress } from "../../ip/address.ts";
import { formatInterfaceAddress, parseInterfaceAddress } from "../../ip/prefix.ts";
import { decodeRangeSets } from "./decode-ranges.ts";
import { field, list, type Placed, section, text, wrong } from "./fields.ts";
import type { RangeSet } from "./range-set.ts";

/** Upstream's plugin keeps its files in the same directory. */
const DATA_DIRECTORY = "/var/lib/cni/networks";

/** The fields of a call that identify its network. */
export interface NetworkInput {
  readonly config: JsonObject;
  readonly networkName: string;
}

/** The fields of a call that determine its addresses. */
export interface AddressInput extends NetworkInput {
  readonly cniVersion: CniVersion;
  /** CNI_ARGS as text. */
  readonly args: string;
}

export interface HostLocalConfig {
  /** The folder of this network's reservations. */
  readonly directory: string;
  readonly rangeSets: readonly RangeSet[];
  /** Requested addresses: all of them are assigned, or none. */
  readonly requested: readonly Address[];
  readonly routes: readonly CniRoute[];
  /** The file from which the result's `dns` is read. */
  readonly resolvConf: string | undefined;
}

export function decodeHostLocal(input: AddressInput): HostLocalConfig {
  const { config, cniVersion } = input;
  const ipam = section(field({ object: config, place: "" }, "ipam"));
  return {
    directory: networkDirectory(input),
    rangeSets: decodeRangeSets(config, cniVersion),
    routes: decodeRoutes(ipam === undefined ? undefined : field(ipam, "routes").value),
    resolvConf: ipam === undefined ? undefined : text(field(ipam, "resolvConf")),
    requested: requestedAddresses(input),
  };
}

/** All that a release needs: it also works with a config whose ranges have changed or are invalid. */
export function networkDirectory({ config, networkName }: NetworkInput): string {
  const ipam = section(field({ object: config, place: "" }, "ipam"));
  const dataDirectory = ipam === undefined ? undefined : text(field(ipam, "dataDir"));
  return `${dataDirectory ?? DATA_DIRECTORY}/${networkName}`;
}

/** From CNI_ARGS, from `args.cni.ips` and from the runtime; each address once. */
function requestedAddresses({ config, args }: AddressInput): readonly Address[] {
  const whole = { object: config, place: "" };
  const cni = section(field(section(field(whole, "args")) ?? { object: {}, place: "args" }, "cni"));
  const runtime = section(field(whole, "runtimeConfig"));
  const { ip } = args === "" ? {} : decodeArguments(args);
  const asked = [
    ...(ip === undefined ? [] : [{ value: ip, place: "IP of CNI_ARGS" }]),
    ...(cni === undefined ? [] : list(field(cni, "ips"), '["10.1.2.3"]')),
    ...(runtime === undefined ? [] : list(field(runtime, "ips"), '["10.1.2.3"]')),
  ].map(requestedAddress);
  return asked.filter(({ family, value }, index) => {
    return index === asked.findIndex((other) => other.family === family && other.value === value);
  });
}

/** The text may have a prefix length, which is ignored: that of the subnet is used. */
function requestedAddress(placed: Placed): Address {
  const written = text(placed) ?? "";
  const read = parseAddress(written) ?? parseInterfaceAddress(written)?.address;
  if (read === undefined) throw wrong(placed, "it must be an IP address such as 10.1.2.3");
  return unmapAddress(read);
}

/** The routes are passed on, with addresses in canonical form. */
function decodeRoutes(routes: unknown): readonly CniRoute[] {
  if (routes === undefined) return [];
  return decodeResultShape({ routes }, "plain-ips", "ipam").routes.map((route, index) => {
    const destination = parseInterfaceAddress(route.destination);
    const place = `ipam.routes[${index}].dst`;
    if (destination === undefined) throw wrong({ value: route.destination, place }, "it must be a subnet");
    return { ...route, destination: formatInterfaceAddress(destination), gateway: canonicalGateway(route, index) };
  });
}

function canonicalGateway({ gateway }: CniRoute, index: number): string | undefined {
  if (gateway === undefined) return undefined;
  const read = parseAddress(gateway);
  if (read !== undefined) return formatAddress(unmapAddress(read));
  throw wrong({ value: gateway, place: `ipam.routes[${index}].gw` }, "it must be an IP address");
}
