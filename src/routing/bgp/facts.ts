/** What the plan of BGP is computed from. */
import type { Address, Family } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { BGPConfiguration } from "../../model/bgp-configuration.ts";
import type { PasswordReference } from "../../model/bgp-fields.ts";
import type { BGPFilter } from "../../model/bgp-filter.ts";
import type { BGPPeer } from "../../model/bgp-peer.ts";
import type { RoutedNode, RoutedPool } from "../facts.ts";

export interface BgpFacts {
  /** The name of the planned node. */
  readonly node: string;
  readonly nodes: Iterable<RoutedNode>;
  readonly pools: Iterable<RoutedPool>;
  /** Of the plan of routes: blocks, single addresses and pod CIDRs of this node. */
  readonly announced: Iterable<Prefix>;
  /** Of the plan of routes: what other nodes have outside every pool. */
  readonly outsidePools: Iterable<Prefix>;
  readonly configurations: Iterable<BGPConfiguration>;
  readonly peers: Iterable<BGPPeer>;
  readonly filters: Iterable<BGPFilter>;
  /** Absent: there are none. */
  readonly localServices?: LocalServices;
  /** What the last configuration of BIRD announced: it stays while nobody knows where Services are. */
  readonly announcedBefore?: readonly Prefix[];
  /** By `passwordKey()`. One that is not in it has not been read yet. */
  readonly passwords: ReadonlyMap<string, Password>;
}

/** `unknown`: they cannot be read, or not yet. */
export type LocalServices = readonly PlacedService[] | "unknown";

/** A Service with `externalTrafficPolicy: Local`: only nodes with a ready endpoint of it may get its packets. */
export interface PlacedService {
  readonly clusterIPs: readonly Address[];
  readonly externalIPs: readonly Address[];
  readonly loadBalancerIPs: readonly Address[];
  /** The families in which this node has a ready endpoint; `unknown`: its endpoints cannot be read, or not yet. */
  readonly families: ReadonlySet<Family> | "unknown";
}

export type Password =
  | { readonly kind: "read"; readonly text: string }
  | {
      readonly kind: "unknown";
      /** For people: `secret "bgp-passwords" does not exist`. */
      readonly reason: string;
      /** It may exist: the attempt to read it has failed. */
      readonly isTransient?: boolean;
    };

/** What the reference refers to, for people and as a key. */
export function passwordKey({ secretKeyRef, file }: PasswordReference): string {
  if (file !== undefined) return `file "${file}"`;
  return `key "${secretKeyRef?.key ?? ""}" of Secret "${secretKeyRef?.name ?? ""}"`;
}

export type ResolvedPassword =
  | { readonly ok: true; readonly text: string | undefined }
  | { readonly ok: false; readonly problem: string };

/** Without a reference there is no password. */
export function resolvePassword(
  reference: PasswordReference | undefined,
  passwords: BgpFacts["passwords"],
): ResolvedPassword {
  if (reference === undefined) return { ok: true, text: undefined };
  const password = passwords.get(passwordKey(reference));
  if (password?.kind === "read") return { ok: true, text: password.text };
  const reason = password?.reason ?? `${passwordKey(reference)} has not been read yet`;
  return { ok: false, problem: `the password is missing: ${reason}` };
}
