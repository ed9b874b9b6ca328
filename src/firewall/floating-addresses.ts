/**
 * Which floating IP leads to which pod of this node, and how what the kernel has
 * differs from that. Pure, and independent of nftables: the rendering is in
 * floating-rules.ts.
 *
 * An external address leads to one pod only. If two pods of the node claim it, the
 * one with the lowest key has it, whatever the order in which they were added.
 */
import { type Address, compareAddresses, formatAddress, isSameAddress, parseAddress } from "../ip/address.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";

export interface FloatingAddress {
  readonly external: Address;
  /** The address of the pod, of the same family. */
  readonly internal: Address;
}

/** The floating IPs of an endpoint. */
export interface FloatingClaim {
  /** The key of the endpoint in the datastore. */
  readonly key: string;
  readonly addresses: readonly FloatingAddress[];
}

/** An address that a second endpoint claims, to no effect. */
export interface FloatingConflict {
  readonly external: Address;
  readonly winner: string;
  readonly loser: string;
}

export interface FloatingPlan {
  /** Each external address once, in order. */
  readonly addresses: readonly FloatingAddress[];
  readonly conflicts: readonly FloatingConflict[];
}

/** `undefined` if the endpoint belongs to another node, or has no floating IPs. */
export function floatingClaim(key: string, { spec }: WorkloadEndpoint, node: string): FloatingClaim | undefined {
  if (spec.node !== node || spec.ipNATs === undefined) return undefined;
  const addresses = floatingPairs(spec.ipNATs);
  return addresses.length === 0 ? undefined : { key, addresses };
}

/** Of addresses of the same family. */
function floatingPairs(nats: NonNullable<WorkloadEndpoint["spec"]["ipNATs"]>): readonly FloatingAddress[] {
  return nats.flatMap(({ externalIP, internalIP }): FloatingAddress[] => {
    const [external, internal] = [parseAddress(externalIP), parseAddress(internalIP)];
    return external !== undefined && external.family === internal?.family ? [{ external, internal }] : [];
  });
}

/** Does not depend on the order of the claims. */
export function planFloating(claims: Iterable<FloatingClaim>): FloatingPlan {
  const winners = new Map<string, { readonly key: string; readonly address: FloatingAddress }>();
  const conflicts: FloatingConflict[] = [];
  for (const { key, addresses } of [...claims].sort((left, right) => (left.key < right.key ? -1 : 1))) {
    for (const address of addresses) {
      const { external } = address;
      const winner = winners.get(formatAddress(external));
      if (winner === undefined) winners.set(formatAddress(external), { key, address });
      else if (winner.key !== key) conflicts.push({ external, winner: winner.key, loser: key });
    }
  }
  const addresses = [...winners.values()].map(({ address }) => address);
  return { addresses: addresses.sort((left, right) => compareAddresses(left.external, right.external)), conflicts };
}

/** As a sentence, for a log. */
export function describeConflict({ external, winner, loser }: FloatingConflict): string {
  return `Floating IP "${formatAddress(external)}" of endpoint "${loser}" has no effect: it leads to endpoint "${winner}" of this node`;
}

export interface FloatingChanges {
  readonly removed: readonly FloatingAddress[];
  readonly added: readonly FloatingAddress[];
}

export function floatingChanges(
  present: readonly FloatingAddress[],
  wanted: readonly FloatingAddress[],
): FloatingChanges {
  return { removed: without(present, wanted), added: without(wanted, present) };
}

/** One for each pod address: a pod that reaches itself by a floating IP sees this source. */
export function hairpinSources(addresses: readonly FloatingAddress[]): readonly FloatingAddress[] {
  const sources = new Map<string, FloatingAddress>();
  for (const address of addresses) {
    const name = formatAddress(address.internal);
    const before = sources.get(name);
    if (before === undefined || compareAddresses(address.external, before.external) < 0) sources.set(name, address);
  }
  return [...sources.values()];
}

function without(addresses: readonly FloatingAddress[], others: readonly FloatingAddress[]): FloatingAddress[] {
  return addresses.filter((address) => !others.some((other) => isSame(address, other)));
}

function isSame(left: FloatingAddress, right: FloatingAddress): boolean {
  return isSameAddress(left.external, right.external) && isSameAddress(left.internal, right.internal);
}
