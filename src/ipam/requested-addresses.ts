/**
 * The addresses that the runtime asks for, in the places that CNI's conventions define.
 *
 *   IP= of CNI_ARGS     podman --ip
 *   args.cni.ips        written into the network config
 *   runtimeConfig.ips   capability "ips"; podman --ip with --ip6
 *
 * Pure.
 */
import type { CniArguments } from "../cni/arguments.ts";
import type { JsonObject } from "../cni/json.ts";
import { PluginError } from "../errors.ts";
import { type Address, isSameAddress, parseAddress, unmapAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { field, list, type Placed, section, text, wrong } from "./hostlocal/fields.ts";

export interface RequestedAddress {
  readonly address: Address;
  /** Where it is requested, for messages. */
  readonly place: string;
}

export interface AddressSources {
  readonly config: JsonObject;
  readonly args: Pick<CniArguments, "ip">;
}

const EXAMPLE = '["10.1.2.3"]';

/** Each address once, even if several places ask for it. */
export function requestedAddresses({ config, args }: AddressSources): readonly RequestedAddress[] {
  const whole = { object: config, place: "" };
  const runtime = section(field(whole, "runtimeConfig"));
  const inArgs = section(field(whole, "args"));
  const cni = inArgs === undefined ? undefined : section(field(inArgs, "cni"));
  const requested: RequestedAddress[] = args.ip === undefined ? [] : [fromArguments(args.ip)];
  if (cni !== undefined) requested.push(...list(field(cni, "ips"), EXAMPLE).map(fromConfig));
  if (runtime !== undefined) requested.push(...list(field(runtime, "ips"), EXAMPLE).map(fromConfig));
  if (requested.length < 2) return requested;
  return requested.filter(
    ({ address }, index) => index === requested.findIndex((other) => isSameAddress(other.address, address)),
  );
}

function fromArguments(written: string): RequestedAddress {
  const address = parsed(written);
  if (address !== undefined) return { address, place: "IP of CNI_ARGS" };
  throw new PluginError("environment-invalid", `Cannot use IP of CNI_ARGS: ${quoted(written)} is not an IP address`, {
    details: 'write one address, such as IP=10.1.2.3; an address of each family needs the capability "ips"',
  });
}

function fromConfig(placed: Placed): RequestedAddress {
  const address = parsed(text(placed) ?? "");
  if (address === undefined) throw wrong(placed, "it must be an IP address such as 10.1.2.3");
  return { address, place: placed.place };
}

/** The text may have a prefix length, which is not used: the network determines it. */
function parsed(written: string): Address | undefined {
  const address = parseAddress(written) ?? parseInterfaceAddress(written)?.address;
  return address && unmapAddress(address);
}
