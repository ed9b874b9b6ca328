/** What is asked of the allocator, and what it answers. */
import type { Unreadable } from "../datastore/read-each.ts";
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import type { Owner, ReleaseManner } from "./block.ts";
import type { ThisMachine } from "./node-machine.ts";
import type { PodNamespace, Pool } from "./pools.ts";

/**
 * One address: any address of a family, or a given one; or one of each family of a list. With `pools` only an address in one of them. `place`: the
 * annotation that asks for it, for messages.
 */
export type AddressRequest =
  | ({
      readonly kind: "automatic";
      readonly family: Family;
      /** What asks for the family, for messages; absent: the network config. */
      readonly familyPlace?: string;
    } & RequestedPools)
  | ({ readonly kind: "given"; readonly address: Address; readonly place?: string | undefined } & RequestedPools)
  | {
      readonly kind: "listed";
      /** The name of an IPAddressList. */
      readonly list: string;
      /** Where it is named, for messages. */
      readonly place: string;
      /** Absent: each family that the list has. */
      readonly families?: RequestedFamilies;
    };

export interface RequestedFamilies {
  readonly value: readonly Family[];
  /** Where they are requested, for messages. */
  readonly place: string;
}

export interface RequestedPools {
  /** CIDRs or names; absent: the node selectors decide. */
  readonly pools?: readonly string[] | undefined;
  /** Where the pools are requested, for messages; absent: in the network config. */
  readonly poolsPlace?: string | undefined;
}

export interface AssignRequest extends Owner {
  /** Addresses that the owner holds under another node's name are recorded for this one: see `onAnyNode`. */
  readonly node: string;
  /** Secondary attributes kept with the allocation: pod, namespace, container … `node`, `timestamp` and the interface are added. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Of the pod, for pools that serve some namespaces only; absent: a container without a pod. */
  readonly podNamespace?: PodNamespace;
  /** To refuse a node that another machine has registered; absent: not checked. */
  readonly machineIdentity?: ThisMachine["machineIdentity"];
  /**
   * The owner has no link: an address that it holds already is recorded as assigned now, so that a search for leaks,
   * which judges by links, does not release it before the link is there.
   */
  readonly renewsHeld?: boolean;
  /** Addresses that the owner holds and will release: it gets another although it has them. */
  readonly replaced?: readonly Address[];
  /** Addresses may be kept for the identity of the pod; absent: they belong to the container. */
  readonly keep?: KeepRequest;
  readonly intendedUse: "Workload" | "Tunnel";
  /** All of them or none; at most one automatic request per family. */
  readonly addressRequests: readonly AddressRequest[];
}

/** Whose addresses are kept, and when. */
export interface KeepRequest {
  /** See `keepHandle()`. */
  readonly handle: string;
  readonly containerId: string;
  /** "if its pool does": all addresses of the request are kept if one of them is in a pool that keeps addresses. */
  readonly when: "always" | "if its pool does";
  /** How long an address waits; absent: as its pool says, or else as usual. */
  readonly seconds?: number;
  /** What asks for that long, if the cluster limits it. */
  readonly limited?: { readonly text: string; readonly place: string };
  /** `StatefulSet/db` */
  readonly owner?: string;
  /** What was kept in another namespace of the same name is not for the pod. Absent: not known. */
  readonly namespaceUid?: string;
  /** `pod "shop/db-0"`, for messages. */
  readonly title: string;
}

export interface AssignedAddress {
  readonly address: Address;
  /** The block it lies in: its length is the prefix length of the CNI result. */
  readonly block: Prefix;
  /** The pool it lies in, when it still exists. */
  readonly pool?: string;
  /** Asked for by itself, or from a list. */
  readonly given: boolean;
  /** Held before this request: nothing new was taken. */
  readonly held: boolean;
  /** Kept for the identity: it waited for it, or is kept from now on. */
  readonly kept?: "again" | "from now on";
  /** The node that the address was recorded for before this request, if the host was renamed. */
  readonly formerNode?: string;
}

/** In the order of the requests. */
export interface Assignment {
  /** Under which handle: another one than that of the request if the addresses are kept. */
  readonly handle: string;
  readonly addresses: readonly AssignedAddress[];
  /** Every pool that was read, whatever it was used for. */
  readonly pools: readonly Pool[];
  readonly unreadablePools: readonly Unreadable[];
}

/** Pools that cannot be used. */
export function poolWarnings({
  pools,
  unreadablePools,
}: Pick<Assignment, "pools" | "unreadablePools">): readonly string[] {
  return [
    ...pools.flatMap(({ name, overlaps, unusable }) => {
      const why = overlaps ?? unusable;
      return why === undefined ? [] : [`Pool ${quoted(name)} is not used: ${why}`];
    }),
    ...unreadablePools.map(({ failure }) => `A pool is not used: ${failure.message}`),
  ];
}

/** For the log. */
export function assignmentFields({ addresses }: Assignment): {
  readonly addresses: readonly string[];
  readonly pools: readonly string[];
  readonly kept?: "again" | "from now on";
} {
  const pools = new Set(addresses.flatMap(({ pool }) => pool ?? []));
  const kept = addresses.find((each) => each.kept !== undefined)?.kept;
  return {
    addresses: addresses.map(({ address }) => formatAddress(address)),
    pools: [...pools],
    ...(kept === undefined ? {} : { kept }),
  };
}

export interface ReleaseHandleRequest extends Owner {
  readonly node: string;
  /** For a host that may have been renamed; absent: nothing is released. */
  readonly ifNoneOnNode?: "release nothing" | "release those of other nodes";
  /** What is thought to be held (from `prevResult`): only narrows down which blocks are read first. */
  readonly likely?: readonly string[];
  /** Absent: what is kept for an identity waits for it. */
  readonly how?: ReleaseManner;
  /** What the container uses of addresses that are kept for an identity. */
  readonly kept?: KeptUse;
}

export interface KeptUse {
  readonly containerId: string;
  /** Read if nothing else leads to the addresses; absent: not known from the call. */
  readonly handle?: string;
  /** Those that nobody had before: they are not kept. */
  readonly forGood?: readonly Address[];
  /** Called with those whose use ends, before they are written. */
  readonly ending?: (addresses: readonly Address[]) => void;
}

export interface RecountRequest {
  readonly handle: string;
  readonly likely?: readonly Prefix[];
}

/** An address to give back, if it still belongs to whom it is thought to belong. */
export interface GuardedAddress {
  readonly address: Address;
  readonly handle?: string;
  readonly sequenceNumber?: bigint;
  /** Of an address that is kept for an identity: the container that uses it. Another one of the identity has the same handle. */
  readonly containerId?: string;
  /** Absent: if it is kept for an identity, its use ends, and it waits; one that waits already is as good as released. */
  readonly how?: ReleaseManner;
}

/** As it was found. */
export function guarded(found: {
  readonly address: Address;
  readonly handle: string | undefined;
  readonly sequenceNumber: bigint | undefined;
}): GuardedAddress {
  const { address, handle, sequenceNumber } = found;
  return {
    address,
    ...(handle === undefined ? {} : { handle }),
    ...(sequenceNumber === undefined ? {} : { sequenceNumber }),
  };
}

/** "all or none": if one of them belongs to another by now, none is released. */
export type ReleaseRule = "each" | "all or none";

export interface Released {
  readonly released: readonly Address[];
  /** Free already, or in no block. */
  readonly absent: readonly Address[];
  /** Belong to another by now: left alone. */
  readonly refused: readonly Address[];
}
