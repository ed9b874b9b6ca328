/**
 * Which addresses an attachment asks the allocator for.
 *
 *   annotations  >  requests of the runtime  >  network config  >  selectors of the pools
 *
 * Addresses in an annotation, or of a list that it names, are all that the attachment gets. Otherwise the first
 * source that asks decides for each family; a family that the runtime does not ask
 * for is assigned as the config says. An address that the runtime asks for must be
 * in the pools that an annotation, or else the config, lists for its family. If
 * none are listed, the allocator takes any pool that selects the node. Families in
 * an annotation are all that the attachment gets, whoever asks for another one.
 * Pure.
 */
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { type Family, formatAddress } from "../ip/address.ts";
import type { AddressRequest, RequestedFamilies, RequestedPools } from "./request.ts";
import type { RequestedAddress } from "./requested-addresses.ts";

/** What each source asks for. */
export interface RequestSources {
  readonly ipam: Pick<NetworkConfig["ipam"], "assignIpv4" | "assignIpv6" | "ipv4Pools" | "ipv6Pools">;
  readonly requested: readonly RequestedAddress[];
  readonly annotated?: AnnotatedRequests;
}

/** What the annotations of a pod and its namespace ask for. */
export interface AnnotatedRequests {
  /** At most one of each family; the attachment gets no others. */
  readonly addresses?: readonly RequestedAddress[];
  readonly pools: Readonly<Partial<Record<Family, PoolRequest>>>;
  /** The attachment gets an address of each, and none of another. */
  readonly families?: RequestedFamilies;
  /** The name of an IPAddressList; the attachment gets addresses of it and no others. */
  readonly list?: { readonly name: string; readonly place: string };
}

export interface PoolRequest {
  /** CIDRs or names. */
  readonly pools: readonly string[];
  /** Where they are requested, for messages. */
  readonly place: string;
}

export function addressRequestsOf(sources: RequestSources): readonly AddressRequest[] {
  const { requested, annotated } = sources;
  const addresses = annotated?.addresses ?? requested;
  const { families, list } = annotated ?? {};
  if (list !== undefined) {
    return [{ kind: "listed", list: list.name, place: list.place, ...(families === undefined ? {} : { families }) }];
  }
  const addressRequests: AddressRequest[] = [];
  for (const family of families?.value ?? FAMILIES) {
    const given = onlyOne(addresses, family);
    if (given !== undefined) addressRequests.push(givenRequest(given, sources));
    else if (isAssigned(family, sources)) {
      const asked = families === undefined ? {} : { familyPlace: families.place };
      addressRequests.push({ kind: "automatic", family, ...asked, ...listedPools(family, sources) });
    }
  }
  if (addressRequests.length > 0) return addressRequests;
  throw new PluginError(
    "config-invalid",
    'Cannot assign an address: "ipam.assign_ipv4" and "ipam.assign_ipv6" are both "false", and no address was requested',
  );
}

const FAMILIES = [4, 6] as const;

/** Without a request for an address of the family. */
function isAssigned(family: Family, { ipam, annotated }: RequestSources): boolean {
  if (annotated?.addresses !== undefined) return false;
  if (annotated?.families !== undefined) return true;
  return family === 4 ? ipam.assignIpv4 : ipam.assignIpv6;
}

/** An address in an annotation takes precedence over every list of pools. */
function givenRequest({ address, place }: RequestedAddress, sources: RequestSources): AddressRequest {
  if (sources.annotated?.addresses !== undefined) return { kind: "given", address, place };
  return { kind: "given", address, ...listedPools(address.family, sources) };
}

function listedPools(family: Family, { ipam, annotated }: RequestSources): RequestedPools {
  const request = annotated?.pools[family];
  if (request !== undefined) return { pools: request.pools, poolsPlace: request.place };
  return { pools: asked(family === 4 ? ipam.ipv4Pools : ipam.ipv6Pools) };
}

function onlyOne(requested: readonly RequestedAddress[], family: Family): RequestedAddress | undefined {
  let first: RequestedAddress | undefined;
  for (const each of requested) {
    if (each.address.family !== family) continue;
    if (first !== undefined) throw tooMany(first, each);
    first = each;
  }
  return first;
}

function tooMany(first: RequestedAddress, second: RequestedAddress): PluginError {
  const { family } = first.address;
  return new PluginError(
    "field-unsupported",
    `Cannot assign two IPv${family} addresses to one interface: ${shown(first)} and ${shown(second)} are requested`,
    { details: `request one IPv${family} address` },
  );
}

function shown({ address, place }: RequestedAddress): string {
  return `"${formatAddress(address)}" (${place})`;
}

/** An empty list does not restrict the pools. */
function asked(pools: readonly string[] | undefined): readonly string[] | undefined {
  return pools === undefined || pools.length === 0 ? undefined : pools;
}
