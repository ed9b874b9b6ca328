/** A declared pool as the IPPool that the operator keeps, and the problems of that IPPool in the words of the Installation. */
import { API_VERSION } from "../../identity.ts";
import { NETWORK_PATH } from "../../model/installation/check.ts";
import { type Encapsulation, IPIP_OF_IPV6 } from "../../model/installation/pool.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import type { Checked, Problem } from "../../model/problem.ts";
import { withManagedLabel } from "../managed-by-label.ts";
import { type CompletePool, OPTIONAL_FIELDS } from "./default-pools.ts";

type TunnelMode = "Never" | "Always" | "CrossSubnet";

const TUNNELS: Readonly<Record<Encapsulation, { readonly ipipMode: TunnelMode; readonly vxlanMode: TunnelMode }>> = {
  VXLANCrossSubnet: { ipipMode: "Never", vxlanMode: "CrossSubnet" },
  VXLAN: { ipipMode: "Never", vxlanMode: "Always" },
  IPIPCrossSubnet: { ipipMode: "CrossSubnet", vxlanMode: "Never" },
  IPIP: { ipipMode: "Always", vxlanMode: "Never" },
  None: { ipipMode: "Never", vxlanMode: "Never" },
};

/** `index`: the place of the pool in the declaration, for the paths of problems. */
export function poolResource(pool: CompletePool, index: number): Checked<IPPool> {
  const decoded = ipPool.decode({
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name: pool.name },
    spec: {
      cidr: pool.cidr,
      ...TUNNELS[pool.encapsulation],
      natOutgoing: pool.natOutgoing === "Enabled",
      nodeSelector: pool.nodeSelector,
      blockSize: pool.blockSize,
      disabled: pool.disableNewAllocations,
      disableBGPExport: pool.disableBGPExport,
      allowedUses: pool.allowedUses,
      ...Object.fromEntries(
        OPTIONAL_FIELDS.flatMap((field) => (pool[field] === undefined ? [] : [[field, pool[field]]])),
      ),
    },
  });
  if (decoded.ok) return { ok: true, value: withManagedLabel(decoded.value) };
  return { ok: false, problems: decoded.problems.map((problem) => asDeclared(problem, pool, index)) };
}

export function poolPath(index: number): string {
  return `${NETWORK_PATH}.ipPools[${index}]`;
}

/** The fields of an IPPool, as a declaration calls them. */
const DECLARED_NAMES: Readonly<Record<string, string>> = {
  "metadata.name": "name",
  "spec.disabled": "disableNewAllocations",
};

function asDeclared(problem: Problem, pool: CompletePool, index: number): Problem {
  if (problem.path === "spec.ipipMode") {
    return { path: `${poolPath(index)}.encapsulation`, value: pool.encapsulation, message: IPIP_OF_IPV6 };
  }
  const field = DECLARED_NAMES[problem.path] ?? problem.path.replace(/^spec\./, "");
  return { ...problem, path: `${poolPath(index)}.${field}` };
}
