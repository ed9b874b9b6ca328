/** The network config as host-local reads it. */
import { decodeArguments, refuseTwoRequests } from "../../cni/arguments.ts";
import type { JsonObject } from "../../cni/json.ts";
import type { CniRoute } from "../../cni/result.ts";
import { decodeResultShape } from "../../cni/result-shape.ts";
import type { CniVersion } from "../../cni/version.ts";
import { type Address, formatAddress, parseAddress, unmapAddress } from "../../ip/address.ts";
import { formatInterfaceAddress, parseInterfaceAddress } from "../../ip/prefix.ts";
import { requestedAddresses } from "../requested-addresses.ts";
import { decodeRangeSets } from "./decode-ranges.ts";
import { field, section, text, wrong } from "./fields.ts";
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
    requested: addressesRequested(input),
  };
}

/** All that a release needs: it also works with a config whose ranges have changed or are invalid. */
export function networkDirectory({ config, networkName }: NetworkInput): string {
  const ipam = section(field({ object: config, place: "" }, "ipam"));
  const dataDirectory = ipam === undefined ? undefined : text(field(ipam, "dataDir"));
  return `${dataDirectory ?? DATA_DIRECTORY}/${networkName}`;
}

function addressesRequested({ config, args }: AddressInput): readonly Address[] {
  if (args !== "") refuseTwoRequests(args);
  return requestedAddresses({ config, args: args === "" ? {} : decodeArguments(args) }).map(({ address }) => address);
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
