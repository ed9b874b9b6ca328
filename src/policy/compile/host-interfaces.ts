/** Which host endpoint has which interface of this host. Pure. */
import { isSameAddress, parseAddress } from "../../ip/address.ts";
import { ALL_INTERFACES, type HostEndpoint } from "../../model/host-endpoint.ts";
import { hasPrefix } from "../../model/interface-prefix.ts";
import type { HostInterface } from "../host-interface.ts";

/**
 * The key of the host endpoint of each interface; that of all others under "*". A host endpoint that names the interface
 * comes before one that expects an address of it; of equal ones the lowest key has it. Workload interfaces, which have one
 * of the prefixes, belong to workload endpoints.
 */
export function interfaceOwners(
  endpoints: ReadonlyMap<string, HostEndpoint>,
  interfaces: readonly HostInterface[],
  prefixes: readonly string[],
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const claim = (interfaceName: string, key: string) => {
    const isOfWorkload = interfaceName !== ALL_INTERFACES && hasPrefix(interfaceName, prefixes);
    if (!isOfWorkload && !owners.has(interfaceName)) owners.set(interfaceName, key);
  };
  const sorted = [...endpoints].toSorted(([left], [right]) => (left < right ? -1 : 1));
  for (const [key, { spec }] of sorted) if (spec.interfaceName !== undefined) claim(spec.interfaceName, key);
  for (const [key, { spec }] of sorted) {
    if (spec.interfaceName !== undefined) continue;
    const expected = (spec.expectedIPs ?? []).flatMap((text) => parseAddress(text) ?? []);
    for (const { name, addresses } of interfaces) {
      if (addresses.some((address) => expected.some((each) => isSameAddress(each, address)))) claim(name, key);
    }
  }
  return owners;
}
