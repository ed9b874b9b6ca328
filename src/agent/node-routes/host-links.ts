/** The links of this host that have its addresses. Those of pods and tunnels do not count. */
import { identity } from "../../identity.ts";
import type { Address } from "../../ip/address.ts";
import { prefixAround, prefixContains } from "../../ip/prefix.ts";
import type { KnownAddress } from "../../linux/rtnetlink/address.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { TUNNEL_NAMES, TUNNELS } from "./tunnel-device.ts";

interface AddressOnLink {
  readonly address: Address;
  readonly length: number;
  readonly link: Link;
}

const DEVICES: ReadonlySet<string> = new Set(TUNNEL_NAMES.map((name) => TUNNELS[name].deviceName));

export class HostLinks {
  private readonly places: readonly AddressOnLink[];

  constructor(links: readonly Link[], addresses: readonly KnownAddress[]) {
    const byIndex = new Map(links.filter(isOfHost).map((link) => [link.index, link]));
    this.places = addresses.flatMap(({ address, length, linkIndex, scope }) => {
      const link = byIndex.get(linkIndex);
      return link === undefined || scope !== "universe" ? [] : [{ address, length, link }];
    });
  }

  get links(): readonly Link[] {
    return [...new Set(this.places.map(({ link }) => link))];
  }

  /** The link that has this address. */
  withAddress({ family, value }: Address): Link | undefined {
    return this.places.find(({ address }) => address.family === family && address.value === value)?.link;
  }

  /** The link in whose subnet the address is; of several subnets the smallest. */
  towards(address: Address): Link | undefined {
    const around = this.places.filter((each) => prefixContains(prefixAround(each.address, each.length), address));
    return around.toSorted((left, right) => right.length - left.length)[0]?.link;
  }
}

function isOfHost({ name }: Link): boolean {
  return !name.startsWith(identity.interfacePrefix) && !DEVICES.has(name);
}
