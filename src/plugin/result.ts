/** The result of ADD. Pure. */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import type { CniDns, CniResult, CniRoute } from "../cni/result.ts";
import { type Address, addressBits, formatAddress } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import type { Link } from "../linux/rtnetlink/link.ts";

export interface AttachmentResult {
  readonly host: Pick<Link, "name" | "mtu"> & { readonly mac: Uint8Array };
  readonly container: Pick<Link, "name" | "mtu"> & { readonly mac: Uint8Array };
  /** CNI_NETNS, byte for byte. */
  readonly netns: string;
  readonly addresses: readonly Address[];
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

const CONTAINER_INDEX = 1;

export function resultOf({ host, container, netns, addresses, routes, dns }: AttachmentResult): CniResult {
  return {
    interfaces: [
      { name: host.name, mac: formatMac(host.mac), mtu: host.mtu },
      { name: container.name, mac: formatMac(container.mac), mtu: container.mtu, sandbox: netns },
    ],
    ips: addresses.map((address) => ({
      address: `${formatAddress(address)}/${addressBits(address.family)}`,
      interface: CONTAINER_INDEX,
    })),
    routes,
    dns,
  };
}

/** `dns` of the network config replaces the IPAM plugin's if any of its fields is set, even to an empty list. */
export function chooseDns(config: JsonObject, given: CniDns): CniDns {
  const dns = config["dns"];
  if (!isJsonObject(dns)) return given;
  const { nameservers, domain, search, options } = dns;
  if ([nameservers, domain, search, options].every((field) => field === undefined || field === null)) return given;
  return {
    nameservers: texts(nameservers),
    domain: typeof domain === "string" && domain !== "" ? domain : undefined,
    search: texts(search),
    options: texts(options),
  };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
