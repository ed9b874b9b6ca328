/** Requests about addresses of links. */
import { addressBits, addressFromBytes, isSameAddress } from "../../../src/ip/address.ts";
import { attributesOf, type KernelRequest, numberIn, Refusal } from "../message.ts";
import type { Namespace } from "../namespace.ts";
import { ADDRESS_FLAG, familyOf, IFA } from "../wire.ts";
import { addIpv4, deleteIpv4 } from "./ipv4-addresses.ts";
import { addIpv6, deleteIpv6 } from "./ipv6-addresses.ts";

const HEADER_LENGTH = 8;

export function newAddress(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readAddress(request);
  if (!namespace.links.has(asked.linkIndex)) throw new Refusal("ENODEV");
  const options = { flags: request.flags, cause: request };
  if (asked.address.family === 4) addIpv4(namespace, asked, options);
  else addIpv6(namespace, asked, options);
  return true;
}

export function deleteAddress(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readAddress(request);
  if (!namespace.links.has(asked.linkIndex)) throw new Refusal("ENODEV");
  const found = namespace.addresses.find(
    (each) =>
      each.linkIndex === asked.linkIndex && each.length === asked.length && isSameAddress(each.address, asked.address),
  );
  if (found === undefined) throw new Refusal("EADDRNOTAVAIL");
  if (asked.address.family === 4) deleteIpv4(namespace, found, request);
  else deleteIpv6(namespace, found, request);
  return true;
}

function readAddress(request: KernelRequest) {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const { payload } = request;
  const family = familyOf(payload.getUint8(0));
  const address = addressFromBytes(attributes.get(IFA.local) ?? attributes.get(IFA.address) ?? new Uint8Array());
  const length = payload.getUint8(1);
  if (address === undefined || address.family !== family || length > addressBits(family)) throw new Refusal("EINVAL");
  const flags = numberIn(attributes, IFA.flags) ?? payload.getUint8(2);
  return {
    linkIndex: payload.getUint32(4, true),
    address,
    length,
    scope: payload.getUint8(3),
    flags: flags & ADDRESS_FLAG.noDuplicateDetection,
  };
}
