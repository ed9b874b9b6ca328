/** Decodes the ranges of the config: fills in ends and gateway, and checks for invalid and overlapping ranges. */
import type { JsonObject } from "../../cni/json.ts";
import { type CniVersion, isAtLeast } from "../../cni/version.ts";
import { PluginError } from "../../errors.ts";
import { type Address, type Family, formatAddress, unmapAddress } from "../../ip/address.ts";
import {
  formatPrefix,
  hasHostBits,
  type Prefix,
  parseInterfaceAddress,
  prefixAround,
  prefixContains,
} from "../../ip/prefix.ts";
import { formatRange, rangeBetween } from "../../ip/range.ts";
import { address, field, list, type Placed, type Section, section, text, wrong } from "./fields.ts";
import {
  familyOf,
  firstHost,
  firstOverlap,
  isLargeEnough,
  lastHost,
  type RangeSet,
  type SubnetRange,
} from "./range-set.ts";

const RANGES_SHAPE = '[[{ "subnet": "10.1.0.0/16" }]]';

/** All sets in order: from the runtime, from the flat form, then from `ranges`. */
export function decodeRangeSets(config: JsonObject, cniVersion: CniVersion): readonly RangeSet[] {
  const whole = { object: config, place: "" };
  const runtime = section(field(whole, "runtimeConfig"));
  const ipam = section(field(whole, "ipam"));
  if (ipam === undefined) throw wrong(field(whole, "ipam"), 'write "ipam": { "type": "host-local", "ranges": … }');

  const sets = [
    ...(runtime === undefined ? [] : decodeSets(field(runtime, "ipRanges"))),
    ...(field(ipam, "subnet").value === undefined ? [] : [[decodeRange(ipam)]]),
    ...decodeSets(field(ipam, "ranges")),
  ];
  if (sets.length === 0)
    throw wrong(field(ipam, "ranges"), `at least one range is required: write "ranges": ${RANGES_SHAPE}`);
  refuseOverlap(sets);
  refuseManyBefore030(sets, cniVersion);
  return sets;
}

function decodeSets(placed: Placed): readonly RangeSet[] {
  return list(placed, RANGES_SHAPE).map(decodeSet);
}

function decodeSet(placed: Placed): RangeSet {
  const set = list(placed, '[{ "subnet": "10.1.0.0/16" }] for each set').map(decodeListed);
  if (set.length === 0) throw wrong(placed, "a set must have at least one range");
  const family = familyOf(set);
  if (set.every(({ subnet }) => subnet.network.family === family)) return set;
  throw wrong(
    placed,
    "it mixes IPv4 and IPv6: write a set for each family, since a container gets one address from each set",
  );
}

function decodeListed(placed: Placed): SubnetRange {
  const range = section(placed);
  if (range === undefined) throw wrong(placed, 'write { "subnet": "10.1.0.0/16" }');
  return decodeRange(range);
}

function decodeRange(range: Section): SubnetRange {
  const subnet = decodeSubnet(field(range, "subnet"));
  const gateway = address(field(range, "gateway")) ?? firstHost(subnet);
  const first = boundary(field(range, "rangeStart"), subnet) ?? firstHost(subnet);
  const last = boundary(field(range, "rangeEnd"), subnet) ?? lastHost(subnet);
  const addresses = rangeBetween(first, last);
  if (addresses !== undefined) return { subnet, addresses, gateway };
  throw wrong(field(range, "rangeStart"), `it is after the end of the range, ${formatAddress(last)}`);
}

function decodeSubnet(placed: Placed): Prefix {
  const written = text(placed);
  const read = written === undefined ? undefined : parseInterfaceAddress(written);
  if (read === undefined || isMapped(read.address)) throw wrong(placed, 'it must be a subnet such as "10.1.0.0/16"');

  const subnet = prefixAround(read.address, read.length);
  if (hasHostBits(read)) throw wrong(placed, `it has host bits: write "${formatPrefix(subnet)}"`);
  if (!isLargeEnough(subnet)) throw wrong(placed, "it is too small: the smallest subnet is /30 (IPv6: /126)");
  return subnet;
}

/** The first or last address of a range, which may be the network address or the broadcast address. */
function boundary(placed: Placed, subnet: Prefix): Address | undefined {
  const end = address(placed);
  if (end === undefined || prefixContains(subnet, end)) return end;
  throw wrong(placed, `it is outside the subnet ${formatPrefix(subnet)}`);
}

/** `::ffff:10.0.0.0/104` is not usable as an IPv4 subnet nor as an IPv6 subnet. */
function isMapped(network: Address): boolean {
  return unmapAddress(network).family !== network.family;
}

function refuseOverlap(sets: readonly RangeSet[]): void {
  const overlap = firstOverlap(sets);
  if (overlap === undefined) return;
  const [left, right] = overlap.map(({ addresses }) => formatRange(addresses));
  throw new PluginError(
    "config-invalid",
    `Cannot use the network config: the ranges ${left} and ${right} overlap; an address may be in one range only`,
  );
}

/** A result before 0.3.0 can contain only one address of each family. */
function refuseManyBefore030(sets: readonly RangeSet[], cniVersion: CniVersion): void {
  if (isAtLeast(cniVersion, "0.3.0")) return;
  const count = (family: Family) => sets.filter((set) => familyOf(set) === family).length;
  if (count(4) <= 1 && count(6) <= 1) return;
  throw new PluginError(
    "config-invalid",
    `Cannot use the network config: its ${sets.length} range sets have several addresses of one family, ` +
      `but a result of cniVersion "${cniVersion}" can contain one; write "cniVersion": "0.3.0" or later`,
  );
}
