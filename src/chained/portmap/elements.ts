/** The elements of the tables' maps, one function for each. Pure. */
import { type Address, addressBits, addressBytes, addressFromBytes, type Family } from "../../ip/address.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { concatenate, hostNumber, portValue, protocolValue } from "../../linux/nftables/value.ts";
import type { Claim } from "./claim.ts";
import { protocolName } from "./mapping.ts";
import { OWNER_LENGTH, type Owner } from "./port-owner.ts";
import { fieldsOf, type MasqueradedSource, type PortRecord } from "./port-records.ts";

/** In the owner's place: the port is held on single addresses, so nobody may have it on every address. */
export const HELD_PER_ADDRESS: Uint8Array = new Uint8Array(OWNER_LENGTH);

export function portKey({ protocol, hostAddress, hostPort }: Claim): Uint8Array {
  return concatenate(protocolValue(protocol), addressBytes(hostAddress), portValue(hostPort));
}

/** The same port on every address. */
export function anyAddressKey({ protocol, hostAddress, hostPort }: Claim): Uint8Array {
  const any = addressBytes({ family: hostAddress.family, value: 0n });
  return concatenate(protocolValue(protocol), any, portValue(hostPort));
}

/** The port behind a key, and where it leads as far as that is known. */
export function claimOf(family: Family, key: Uint8Array, data: NftElement["data"]): Claim {
  const host = endpointAt(family, key.subarray(4));
  const pod = endpointAt(family, data instanceof Uint8Array ? data : new Uint8Array(key.length - 4));
  return {
    family,
    protocol: key[0] ?? 0,
    hostAddress: host.address,
    hostPort: host.port,
    podAddress: pod.address,
    podPort: pod.port,
  };
}

/** Whose a pod's address is stands among the owners too, under no protocol. */
export function podKey(pod: Address): Uint8Array {
  return concatenate(protocolValue(0), addressBytes(pod), portValue(0));
}

export function isPodKey(key: Uint8Array): boolean {
  return key[0] === 0;
}

/** Whether the element of `sources` is about the pod of that key. */
export function isSourceOf(pod: Uint8Array, { key }: NftElement): boolean {
  const size = key.length / 2;
  return Bun.deepEquals(key.slice(size), pod.slice(4, 4 + size));
}

export function portElement(claim: Claim): NftElement {
  return { key: portKey(claim), data: concatenate(addressBytes(claim.podAddress), portValue(claim.podPort)) };
}

export function ownerElement(key: Uint8Array, owner: Owner): NftElement {
  return owner.name === "" ? { key, data: owner.id } : { key, data: owner.id, comment: owner.name };
}

export function heldPerAddressElement(claim: Claim): NftElement {
  return { key: anyAddressKey(claim), data: HELD_PER_ADDRESS, comment: "held on single addresses" };
}

export function sourceElement({ source, podAddress }: MasqueradedSource): NftElement {
  return { key: concatenate(addressBytes(source), addressBytes(podAddress)) };
}

/** How many of its bits count is not in the element. */
export function masqueradedSourceOf(family: Family, { key }: NftElement): MasqueradedSource {
  const size = key.length / 2;
  const source = addressFromBytes(key.slice(0, size)) ?? { family, value: 0n };
  const podAddress = addressFromBytes(key.slice(size)) ?? { family, value: 0n };
  return { family, source, length: 0, podAddress };
}

/** Ties a port of a single address to the chain that counts them: see `countingChain`. */
export function countedElement(claim: Claim): NftElement {
  return { key: portKey(claim), data: { kind: "goto", chain: countingChain(claim) } };
}

/**
 * The chain that all elements for single addresses of one port refer to. It
 * never runs: the kernel refuses to delete it (EBUSY) while one refers to it,
 * which makes it a counter that no crash can leave wrong.
 */
export function countingChain({ protocol, hostPort }: Claim): string {
  return `single-${protocolName(protocol)}-${hostPort}`;
}

export function recordKey(id: Uint8Array, index: number): Uint8Array {
  return concatenate(id, hostNumber(index));
}

export function isRecordKeyOf(id: Uint8Array, key: Uint8Array): boolean {
  return Bun.deepEquals(key.slice(0, OWNER_LENGTH), id);
}

/** The first of an owner's records also tells where its container is. */
export function recordElement(owner: Owner, index: number, record: PortRecord, netns: string): NftElement {
  const { protocol, left, leftNumber, pod, podNumber } = fieldsOf(record);
  const isLoopbackLeft = record.kind === "port" && record.claim.isLoopbackLeft === true;
  const data = concatenate(
    // The protocol fills a byte of four: the next is free for a mark.
    Uint8Array.of(protocol, isLoopbackLeft ? 1 : 0),
    addressBytes(left),
    portValue(leftNumber),
    addressBytes(pod),
    portValue(podNumber),
  );
  const key = recordKey(owner.id, index);
  return index === 0 ? { key, data, comment: netns } : { key, data };
}

/** `address . port`, of what this program wrote. */
function endpointAt(family: Family, bytes: Uint8Array): { readonly address: Address; readonly port: number } {
  const size = addressBits(family) / 8;
  const address = addressFromBytes(bytes.slice(0, size)) ?? { family, value: 0n };
  return { address, port: ((bytes[size] ?? 0) << 8) | (bytes[size + 1] ?? 0) };
}
