/** The rules about a complete Installation: what depends on defaults and on the cluster. Reports all problems together. */

import { isPoolReference } from "../../config/pool-reference.ts";
import {
  formatPrefix,
  isSamePrefix,
  type Prefix,
  parsePrefix,
  prefixCovers,
  prefixesOverlap,
} from "../../ip/prefix.ts";
import { ipv4DetectionField, ipv6DetectionField } from "../../model/address-detection.ts";
import { NETWORK_PATH } from "../../model/installation/check.ts";
import { HOST_LOCAL } from "../../model/installation/choices.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Problem } from "../../model/problem.ts";
import { decodeShape } from "../../model/shape.ts";
import { detectionText } from "./address-detection.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { type CompletePool, platformPrefixes } from "./default-pools.ts";
import type { CompleteNetwork, CompleteSpec } from "./installation-defaults.ts";
import { poolPath, poolResource } from "./pool-resource.ts";

export function validate(spec: CompleteSpec, facts: ClusterFacts): readonly Problem[] {
  const { network } = spec;
  const ipam = spec.cni.ipam.type === HOST_LOCAL ? "HostLocal" : "Pools";
  return [
    ...network.ipPools.flatMap((pool, index) => [
      ...poolProblems(pool, index),
      ...encapsulationProblems(pool, index, { ipam, bgp: network.bgp }),
      ...platformProblems(pool, index, platformPrefixes(facts.platformPodCidrs)),
    ]),
    ...collisions(network.ipPools),
    ...detectionProblems(network),
    ...mtuProblems(network),
    ...poolListProblems(network, { ipam, existing: facts.arePoolsUnknown === true ? undefined : facts.pools }),
  ];
}

function poolProblems(pool: CompletePool, index: number): readonly Problem[] {
  if (pool.nodeSelector.trim() === "") {
    const message = 'selects no node; use "all()" for every node, or another selector';
    return [{ path: `${poolPath(index)}.nodeSelector`, value: pool.nodeSelector, message }];
  }
  const resource = poolResource(pool, index);
  return resource.ok ? [] : resource.problems;
}

interface Routing {
  readonly ipam: "Pools" | "HostLocal";
  readonly bgp: "Enabled" | "Disabled";
}

function encapsulationProblems(pool: CompletePool, index: number, { ipam, bgp }: Routing): readonly Problem[] {
  const { encapsulation } = pool;
  const refused = (message: string): readonly Problem[] => [
    { path: `${poolPath(index)}.encapsulation`, value: encapsulation, message },
  ];
  if (ipam === "HostLocal") {
    if (!encapsulation.startsWith("VXLAN")) return [];
    return refused('is not supported with HostLocal: its ranges are routed by BGP; use "None" or "IPIP"');
  }
  if (bgp === "Enabled" || encapsulation.startsWith("VXLAN")) return [];
  return refused(
    `needs BGP, and ${NETWORK_PATH}.bgp is Disabled; set it to Enabled, or use "VXLAN" or "VXLANCrossSubnet"`,
  );
}

function platformProblems(pool: CompletePool, index: number, platform: readonly Prefix[]): readonly Problem[] {
  const prefix = parsePrefix(pool.cidr);
  if (platform.length === 0 || prefix === undefined || !pool.allowedUses.includes("Workload")) return [];
  if (platform.some((outer) => prefixCovers(outer, prefix))) return [];
  const message = `is outside of the pod CIDRs of the cluster (${platform.map(formatPrefix).join(", ")}), which other components rely on; use a CIDR inside of them`;
  return [{ path: `${poolPath(index)}.cidr`, value: pool.cidr, message }];
}

/** Pools among themselves; with those of the datastore they are compared by `planPools`. */
function collisions(pools: readonly CompletePool[]): readonly Problem[] {
  return pools.flatMap((pool, index): readonly Problem[] => {
    const before = pools.slice(0, index);
    const cidr = (message: string) => [{ path: `${poolPath(index)}.cidr`, value: pool.cidr, message }];
    if (before.some((other) => isSameCidr(other.cidr, pool.cidr))) {
      return cidr("is declared more than once; remove one of the pools");
    }
    const overlapping = before.find((other) => isOverlapping(other.cidr, pool.cidr));
    if (overlapping !== undefined) {
      return cidr(`overlaps pool "${overlapping.name}" (${overlapping.cidr}); use a CIDR that does not overlap it`);
    }
    if (before.every(({ name }) => name !== pool.name)) return [];
    const message = "is the name of two pools; use another name for one of them";
    return [{ path: `${poolPath(index)}.name`, value: pool.name, message }];
  });
}

function isOverlapping(left: string, right: string): boolean {
  const [one, other] = [parsePrefix(left), parsePrefix(right)];
  return one !== undefined && other !== undefined && prefixesOverlap(one, other);
}

function isSameCidr(left: string, right: string): boolean {
  const [one, other] = [parsePrefix(left), parsePrefix(right)];
  return one !== undefined && other !== undefined && isSamePrefix(one, other);
}

function detectionProblems(network: CompleteNetwork): readonly Problem[] {
  const rows = [
    ["nodeAddressAutodetectionV4", ipv4DetectionField],
    ["nodeAddressAutodetectionV6", ipv6DetectionField],
  ] as const;
  return rows.flatMap(([field, schema]) => {
    const detection = network[field];
    if (detection === undefined) return [];
    const decoded = decodeShape(schema, detectionText(detection));
    if (decoded.ok) return [];
    const [method = "", value] = Object.entries(detection)[0] ?? [];
    return decoded.problems.map(({ message }) => ({ path: `${NETWORK_PATH}.${field}.${method}`, value, message }));
  });
}

const SMALLEST_IPV6_MTU = 1280;

function mtuProblems({ mtu = 0, ipPools }: CompleteNetwork): readonly Problem[] {
  const hasIpv6 = ipPools.some(({ cidr }) => cidr.includes(":"));
  if (!hasIpv6 || mtu === 0 || mtu >= SMALLEST_IPV6_MTU) return [];
  const message = `is too small for IPv6; use at least ${SMALLEST_IPV6_MTU}, or 0 to detect it on each node`;
  return [{ path: `${NETWORK_PATH}.mtu`, value: mtu, message }];
}

interface PoolListCircumstances {
  readonly ipam: "Pools" | "HostLocal";
  /** Absent: not known. */
  readonly existing: readonly IPPool[] | undefined;
}

/** A pod could not get an address from a pool that does not exist. */
function poolListProblems(network: CompleteNetwork, { ipam, existing }: PoolListCircumstances): readonly Problem[] {
  const known = [
    ...network.ipPools.map(({ name, cidr }) => ({ name, cidr })),
    ...(existing ?? []).map(({ metadata, spec }) => ({ name: metadata.name, cidr: spec.cidr })),
  ];
  return ([4, 6] as const).flatMap((family): readonly Problem[] => {
    const field = `ipv${family}Pools` as const;
    const list = network[field] ?? [];
    const path = `${NETWORK_PATH}.${field}`;
    if (list.length > 0 && ipam === "HostLocal") {
      return [{ path, value: list, message: "has no effect with HostLocal, which uses no pools; remove it" }];
    }
    const ofFamily = known.filter(({ cidr }) => parsePrefix(cidr)?.network.family === family);
    return list.flatMap((text, index) => {
      const problem =
        syntaxProblem(text, family) ?? (existing === undefined ? undefined : referenceProblem(text, family, ofFamily));
      return problem === undefined ? [] : [{ path: `${path}[${index}]`, value: text, message: problem }];
    });
  });
}

interface KnownPool {
  readonly name: string;
  readonly cidr: string;
}

function syntaxProblem(text: string, family: 4 | 6): string | undefined {
  if (isPoolReference(text, family)) return undefined;
  return `is neither an IPv${family} CIDR nor the name of a pool; use one of them`;
}

function referenceProblem(text: string, family: 4 | 6, known: readonly KnownPool[]): string | undefined {
  if (known.some(({ name, cidr }) => name === text || isSameCidr(cidr, text))) return undefined;
  const names = [...new Set(known.map(({ name }) => name))];
  return names.length === 0
    ? `is not an IPv${family} pool: there is none; declare one in ${NETWORK_PATH}.ipPools`
    : `is not an IPv${family} pool; use ${names.join(", ")}, or declare it in ${NETWORK_PATH}.ipPools`;
}
