/**
 * The result of ADD: one model for every CNI version.
 * `result-conversion.ts` turns it into the shape of each version and back.
 */
export interface CniResult {
  readonly interfaces: readonly CniInterface[];
  readonly ips: readonly CniIp[];
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

export interface CniInterface {
  readonly name: string;
  readonly mac?: string | undefined;
  /** CNI_NETNS for an interface inside the container; absent for one on the host. */
  readonly sandbox?: string | undefined;
  readonly mtu?: number | undefined;
  readonly socketPath?: string | undefined;
  readonly pciId?: string | undefined;
}

export interface CniIp {
  /** Address with prefix length and host bits: "10.1.0.5/16". */
  readonly address: string;
  readonly gateway?: string | undefined;
  /** Index into `interfaces`; zero is a valid index. */
  readonly interface?: number | undefined;
}

export interface CniRoute {
  readonly destination: string;
  readonly gateway?: string | undefined;
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  readonly priority?: number | undefined;
  /** Zero is a table, not the absence of one. */
  readonly table?: number | undefined;
  /** Zero is a scope (global), not the absence of one. */
  readonly scope?: number | undefined;
}

export interface CniDns {
  readonly nameservers: readonly string[];
  readonly domain?: string | undefined;
  readonly search: readonly string[];
  readonly options: readonly string[];
}

/** To build others from: `{ ...EMPTY_RESULT, ips }`. */
export const EMPTY_RESULT: CniResult = {
  interfaces: [],
  ips: [],
  routes: [],
  dns: { nameservers: [], search: [], options: [] },
};

export function addressFamily(address: string): 4 | 6 {
  return address.includes(":") ? 6 : 4;
}
