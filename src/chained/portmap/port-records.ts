/**
 * Everything one owner has in one family's table: ports, and masqueraded
 * sources. The table contains each record three times, for three questions:
 *
 *   ports, sources      where does a packet go?           for the rules
 *   owners              who owns it?                      for ADD, to detect conflicts
 *   attachments         what does this owner have?        for DEL, which needs no other source
 */
import { type Address, addressBits, addressFromBytes, type Family } from "../../ip/address.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { Claim } from "./claim.ts";
import type { Owner } from "./port-owner.ts";

/** Packets from these addresses that are forwarded to the pod get the host's address as source. */
export interface MasqueradedSource {
  readonly family: Family;
  /** The network address. */
  readonly source: Address;
  /** How many of its bits count. */
  readonly length: number;
  readonly podAddress: Address;
}

export type PortRecord =
  | { readonly kind: "port"; readonly claim: Claim }
  | { readonly kind: "source"; readonly masqueraded: MasqueradedSource };

export interface RecordSet {
  readonly family: Family;
  readonly owner: Owner;
  /** Where the container's namespace is: see netns-mark.ts. */
  readonly netns: string;
  readonly records: readonly PortRecord[];
}

export function claimsIn({ records }: Pick<RecordSet, "records">): readonly Claim[] {
  return records.flatMap((record) => (record.kind === "port" ? [record.claim] : []));
}

/** The pod's address to which ports of the family lead. */
export function podAddressOf(recordSets: readonly RecordSet[], family: Family): Address | undefined {
  return recordSets.flatMap(claimsIn).find((claim) => claim.family === family)?.podAddress;
}

/** The data of a record in `attachments`: protocol . address . number . address . number. */
export interface RecordFields {
  readonly protocol: number;
  readonly left: Address;
  readonly leftNumber: number;
  readonly pod: Address;
  readonly podNumber: number;
}

/** A source has protocol 0, which distinguishes it from a port. */
export function fieldsOf(record: PortRecord): RecordFields {
  if (record.kind === "port") {
    const { protocol, hostAddress, hostPort, podAddress, podPort } = record.claim;
    return { protocol, left: hostAddress, leftNumber: hostPort, pod: podAddress, podNumber: podPort };
  }
  const { source, length, podAddress } = record.masqueraded;
  return { protocol: 0, left: source, leftNumber: length, pod: podAddress, podNumber: 0 };
}

/** The record in an element of `attachments`; `undefined` for data not written by this program. */
export function recordOf(family: Family, element: NftElement): PortRecord | undefined {
  const { data } = element;
  const size = addressBits(family) / 8;
  if (!(data instanceof Uint8Array) || data.length !== 12 + 2 * size) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const left = addressFromBytes(data.subarray(4, 4 + size));
  const pod = addressFromBytes(data.subarray(8 + size, 8 + 2 * size));
  if (left === undefined || pod === undefined) return undefined;

  const protocol = view.getUint8(0);
  const leftNumber = view.getUint16(4 + size);
  const podPort = view.getUint16(8 + 2 * size);
  if (protocol === 0) {
    return { kind: "source", masqueraded: { family, source: left, length: leftNumber, podAddress: pod } };
  }
  const claim = { family, protocol, hostAddress: left, hostPort: leftNumber, podAddress: pod, podPort };
  return { kind: "port", claim: view.getUint8(1) === 1 ? { ...claim, isLoopbackLeft: true } : claim };
}
