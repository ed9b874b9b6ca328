/** What routes need to know of an IPPool. Pure. A disabled pool is routed like any other: pods may still use it. */
import { type IPPool, poolPrefix } from "../model/ip-pool.ts";
import type { PoolMode, RoutedPool } from "./facts.ts";

export function routedPool(pool: IPPool): RoutedPool {
  return {
    name: pool.metadata.name,
    prefix: poolPrefix(pool),
    mode: modeOf(pool.spec),
    blockLength: pool.spec.blockSize,
    createdAt: pool.metadata.creationTimestamp ?? "",
    isExported: !pool.spec.disableBGPExport,
  };
}

function modeOf({ vxlanMode, ipipMode }: IPPool["spec"]): PoolMode {
  if (vxlanMode !== "Never") return { kind: "vxlan", onlyAcrossSubnets: vxlanMode === "CrossSubnet" };
  if (ipipMode !== "Never") return { kind: "ipip", onlyAcrossSubnets: ipipMode === "CrossSubnet" };
  return { kind: "unencapsulated" };
}
