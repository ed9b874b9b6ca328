/**
 * Conditions of a rule: each is a few instructions that load a field and compare it,
 * the same that `nft` would write. All use register 0; in an `inet` table a condition
 * on an address needs `matchFamily` before it, one on a port `matchProtocol`.
 */
import { addressBits, addressBytes, type Family } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { Expression, Register } from "./expression.ts";
import { interfacePrefixValue, interfaceValue, portValue, protocolValue } from "./value.ts";
import type { Verdict } from "./verdict.ts";

export type Side = "source" | "destination";

const FAMILY_NUMBER = { 4: 2, 6: 10 } as const;
const ADDRESS_OFFSET = { 4: { source: 12, destination: 16 }, 6: { source: 8, destination: 24 } } as const;
const PORT_OFFSET = { source: 0, destination: 2 } as const;

/** Loads an address of the packet. */
export function loadAddress(family: Family, side: Side, to: Register): Expression {
  const length = addressBits(family) / 8;
  return { kind: "payload", base: "network", offset: ADDRESS_OFFSET[family][side], length, to };
}

/** Loads a port, which has the same offset in TCP, UDP and SCTP. */
export function loadPort(side: Side, to: Register): Expression {
  return { kind: "payload", base: "transport", offset: PORT_OFFSET[side], length: 2, to };
}

export function matchFamily(family: Family): Expression[] {
  return [{ kind: "meta", key: "nfproto", to: 0 }, equal(Uint8Array.of(FAMILY_NUMBER[family]))];
}

/** By IP protocol number. */
export function matchProtocol(protocol: number): Expression[] {
  return [{ kind: "meta", key: "l4proto", to: 0 }, equal(protocolValue(protocol))];
}

/** An address inside the prefix. A length of whole bytes is compared directly, any other with a mask. */
export function matchPrefix(side: Side, prefix: Prefix): Expression[] {
  const { network, length } = prefix;
  if (length === 0) return [];
  const offset = ADDRESS_OFFSET[network.family][side];
  const bytes = addressBytes(network);
  if (length % 8 === 0) {
    const whole = length / 8;
    return [{ kind: "payload", base: "network", offset, length: whole, to: 0 }, equal(bytes.subarray(0, whole))];
  }
  const mask = maskOf(length, bytes.length);
  return [
    { kind: "payload", base: "network", offset, length: bytes.length, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask, flip: new Uint8Array(bytes.length) },
    equal(bytes),
  ];
}

/** One port or a range of them, both ends included. */
export function matchPorts(side: Side, first: number, last = first): Expression[] {
  if (first === last) return [loadPort(side, 0), equal(portValue(first))];
  return [
    loadPort(side, 0),
    { kind: "compare", operator: "greaterOrEqual", from: 0, value: portValue(first) },
    { kind: "compare", operator: "lessOrEqual", from: 0, value: portValue(last) },
  ];
}

export function matchInterface(
  key: "iifname" | "oifname",
  operator: "equal" | "different",
  name: string,
): Expression[] {
  return [
    { kind: "meta", key, to: 0 },
    { kind: "compare", operator, from: 0, value: interfaceValue(name) },
  ];
}

/** Interfaces whose names begin with the prefix. */
export function matchInterfacePrefix(key: "iifname" | "oifname", prefix: string): Expression[] {
  return [{ kind: "meta", key, to: 0 }, equal(interfacePrefixValue(prefix))];
}

export function verdict(verdict: Verdict): Expression {
  return { kind: "verdict", verdict };
}

function equal(value: Uint8Array): Expression {
  return { kind: "compare", operator: "equal", from: 0, value };
}

function maskOf(length: number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => {
    const bits = Math.min(8, Math.max(0, length - index * 8));
    return (0xff << (8 - bits)) & 0xff;
  });
}
