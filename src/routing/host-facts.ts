/** Gathers what the choice of a node's addresses needs: only what the methods in use look at. */
import type { Address, Family } from "../ip/address.ts";
import type { HostAddress } from "../linux/rtnetlink/host-addresses.ts";
import { parseAddressDetection } from "../model/address-detection.ts";
import type { HostFacts } from "./node-address.ts";
import { type DetectionSettings, detectionOf } from "./node-addresses.ts";

export interface HostReader {
  readonly addresses: readonly HostAddress[];
  /** The source address of packets to an address or a name; `undefined` if there is no route, or no such name. */
  readonly sourceTowards: (destination: string, family: Family) => Promise<Address | undefined>;
  /** Of the orchestrator's Node; `undefined` if it cannot be read. */
  readonly internalAddresses: () => Promise<readonly Address[] | undefined>;
}

export async function readHostFacts(
  settings: DetectionSettings,
  { addresses, sourceTowards, internalAddresses }: HostReader,
): Promise<(family: Family) => HostFacts> {
  const methods = {
    4: parseAddressDetection(detectionOf(4, settings)),
    6: parseAddressDetection(detectionOf(6, settings)),
  };
  const asksNode = methods[4].kind === "internal-ip" || methods[6].kind === "internal-ip";
  const internal = asksNode ? await internalAddresses() : undefined;
  const reaching = async (family: Family) => {
    const method = methods[family];
    return method.kind === "can-reach" ? sourceTowards(method.destination, family) : undefined;
  };
  const facts: Record<Family, HostFacts> = {
    4: { addresses, internalAddresses: internal, reachingFrom: await reaching(4) },
    6: { addresses, internalAddresses: internal, reachingFrom: await reaching(6) },
  };
  return (family) => facts[family];
}
