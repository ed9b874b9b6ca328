/** The pools that earlier releases created on a new datastore, from the environment of the node agent. Pure. */
import { identity } from "../../identity.ts";

const PREFIX = identity.environmentPrefix;

/** Specs for `default_pools`. They matter only if the datastore has no pool. */
export function defaultPools(environment: ReadonlyMap<string, string>): readonly object[] {
  if (environment.get("NO_DEFAULT_POOLS") === "true") return [];
  const ipv4 = poolOf(environment, { name: "IPV4POOL", usualCidr: "192.168.0.0/16", usualNat: true });
  const ipv6 = poolOf(environment, { name: "IPV6POOL", usualNat: false });
  return [...ipv4, ...ipv6];
}

interface PoolVariables {
  readonly name: string;
  readonly usualCidr?: string;
  readonly usualNat: boolean;
}

function poolOf(environment: ReadonlyMap<string, string>, { name, usualCidr, usualNat }: PoolVariables) {
  const value = (field: string) => environment.get(`${PREFIX}${name}_${field}`) || undefined;
  const cidr = value("CIDR") ?? usualCidr;
  if (cidr === undefined) return [];
  const [ipip, vxlan] = [mode(value("IPIP")), mode(value("VXLAN"))];
  const [blockSize, nodeSelector] = [value("BLOCK_SIZE"), value("NODE_SELECTOR")];
  const nat = value("NAT_OUTGOING");
  return [
    {
      cidr,
      ...(ipip === undefined ? {} : { ipipMode: ipip }),
      ...(vxlan === undefined ? {} : { vxlanMode: vxlan }),
      natOutgoing: nat === undefined ? usualNat : nat === "true",
      ...(blockSize === undefined ? {} : { blockSize: Number(blockSize) }),
      ...(nodeSelector === undefined ? {} : { nodeSelector }),
    },
  ];
}

function mode(value: string | undefined): string | undefined {
  switch (value?.toLowerCase()) {
    case "always":
      return "Always";
    case "crosssubnet":
      return "CrossSubnet";
    default:
      return undefined;
  }
}
