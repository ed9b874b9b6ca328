/**
 * One host port of one family, forwarded to one port of a pod: a port mapping
 * once the pod's addresses are known. Pure.
 */
import { PluginError } from "../../errors.ts";
import { type Address, type Family, formatAddress, isSameAddress } from "../../ip/address.ts";
import { type PortMapping, protocolName, protocolNumber } from "./mapping.ts";
import type { PodAddresses } from "./pod-addresses.ts";

export interface Claim {
  readonly family: Family;
  /** An IP protocol number. */
  readonly protocol: number;
  /** Zero means every address of the host. */
  readonly hostAddress: Address;
  readonly hostPort: number;
  readonly podAddress: Address;
  readonly podPort: number;
  /** A process on the host listens on the port: what is sent to 127.0.0.0/8 stays on the host. */
  readonly isLoopbackLeft?: true;
}

export interface Claims {
  readonly claims: readonly Claim[];
  readonly unserved: readonly Unserved[];
}

/** What cannot be served, and why. */
export interface Unserved {
  readonly mapping: PortMapping;
  readonly reason: string;
}

/** The same port twice is one claim; to two ports of the pod it is refused. */
export function claimsOf(mappings: readonly PortMapping[], pods: PodAddresses): Claims {
  const claims: Claim[] = [];
  const unserved: Unserved[] = [];
  for (const mapping of mappings) {
    const before = claims.length;
    for (const family of [4, 6] as const) {
      const pod = pods[family]?.address;
      if (pod === undefined) continue;
      const hostAddress = mapping.hostIp ?? { family, value: 0n };
      if (hostAddress.family !== family) continue;
      claims.push({
        family,
        protocol: protocolNumber(mapping.protocol),
        hostAddress,
        hostPort: mapping.hostPort,
        podAddress: pod,
        podPort: mapping.containerPort,
      });
    }
    if (claims.length > before) continue;
    unserved.push({ mapping, reason: "the container has no address of that family" });
  }
  return { claims: claims.length < 2 ? claims : withoutRepetition(claims), unserved };
}

export function isForAnyAddress({ hostAddress }: Claim): boolean {
  return hostAddress.value === 0n;
}

/** `tcp 8080`, `udp 192.0.2.1:53`, `tcp [fd00::1]:80`; a port of every address is of one family only if it says so. */
export function formatHostPort(claim: Claim): string {
  const { protocol, hostAddress, hostPort } = claim;
  if (isForAnyAddress(claim)) return `${protocolName(protocol)} ${hostPort}`;
  const host = formatAddress(hostAddress);
  return `${protocolName(protocol)} ${hostAddress.family === 6 ? `[${host}]` : host}:${hostPort}`;
}

/** For the log: `ports="tcp 8080"`, and the addresses of the container that they are forwarded to. */
export function portFields(claims: readonly Claim[]): {
  readonly addresses: readonly string[];
  readonly ports: readonly string[];
} {
  const addresses = new Set(claims.map(({ podAddress }) => formatAddress(podAddress)));
  return { addresses: [...addresses], ports: [...new Set(claims.map(formatHostPort))] };
}

function withoutRepetition(claims: readonly Claim[]): readonly Claim[] {
  const kept: Claim[] = [];
  for (const claim of claims) {
    const rival = claims.find((other) => other !== claim && overlap(other, claim) && other.podPort !== claim.podPort);
    if (rival !== undefined) {
      const state = `the request forwards ${formatHostPort(claim)} to two ports, ${claim.podPort} and ${rival.podPort}`;
      throw new PluginError("config-invalid", `Cannot map host ports: ${state}`);
    }
    if (!isCovered(claim, claims, kept)) kept.push(claim);
  }
  return kept;
}

/** By an equal one before it, or by one for every address. */
function isCovered(claim: Claim, claims: readonly Claim[], kept: readonly Claim[]): boolean {
  if (kept.some((other) => overlap(other, claim) && isSameAddress(other.hostAddress, claim.hostAddress))) return true;
  if (isForAnyAddress(claim)) return false;
  return claims.some((other) => overlap(other, claim) && isForAnyAddress(other));
}

/** Whether a packet could match both. */
function overlap(left: Claim, right: Claim): boolean {
  if (left.family !== right.family || left.protocol !== right.protocol || left.hostPort !== right.hostPort)
    return false;
  return isForAnyAddress(left) || isForAnyAddress(right) || isSameAddress(left.hostAddress, right.hostAddress);
}
