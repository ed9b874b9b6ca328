/**
 * All that one owner keeps in one family's table: ports, and sources whose
 * address is hidden. The table holds it three times over, for three questions:
 *
 *   ports, sources      what does a packet do?            asked by the rules
 *   owners              whose is it?                      asked by ADD, before anybody else's
 *   attachments         what does this owner have?        asked by DEL, which needs no other source
 */
import { type Address, addressBits, addressFromBytes, type Family } from "../../ip/address.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { Owner } from "./attachment.ts";
import type { Claim } from "./claim.ts";

/** Packets from these addresses to the pod, once they were led to it, get the host's address as source. */
export interface HiddenSource {
  readonly family: Family;
  /** The network address. */
  readonly source: Address;
  /** How many of its bits count. */
  readonly length: number;
  readonly podAddress: Address;
}

export type KeptRecord =
  | { readonly kind: "port"; readonly claim: Claim }
  | { readonly kind: "source"; readonly hidden: HiddenSource };

export interface Holding {
  readonly family: Family;
  readonly owner: Owner;
  /** Where the container's namespace is: see netns-mark.ts. */
  readonly netns: string;
  readonly records: readonly KeptRecord[];
}

/** What stands behind a record's number in `attachments`: protocol . address . number . address . number. */
export interface RecordFields {
  readonly protocol: number;
  readonly left: Address;
  readonly leftNumber: number;
  readonly pod: Address;
  readonly podNumber: number;
}

/** A source is told from a port by its protocol, which is none. */
export function fieldsOf(record: KeptRecord): RecordFields {
  if (record.kind === "port") {
    const { protocol, hostAddress, hostPort, podAddress, podPort } = record.claim;
    return { protocol, left: hostAddress, leftNumber: hostPort, pod: podAddress, podNumber: podPort };
  }
  const { source, length, podAddress } = record.hidden;
  return { protocol: 0, left: source, leftNumber: length, pod: podAddress, podNumber: 0 };
}

/** The record behind an element of `attachments`; `undefined` for what was not written by this program. */
export function recordOf(family: Family, element: NftElement): KeptRecord | undefined {
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
    return { kind: "source", hidden: { family, source: left, length: leftNumber, podAddress: pod } };
  }
  const claim = { family, protocol, hostAddress: left, hostPort: leftNumber, podAddress: pod, podPort };
  return { kind: "port", claim };
}
