import type { CniInterface, CniResult } from "../cni/result.ts";
import { parseMac } from "../ip/mac.ts";

/** The container's interface in the result of ADD. */
export function ownInterface({ interfaces }: CniResult, ifname: string): CniInterface | undefined {
  return interfaces.find(({ name, sandbox }) => name === ifname && sandbox !== undefined);
}

/** Its MAC, if the result has it: a runtime need not repeat its request for a MAC after ADD. */
export function resultMac(result: CniResult | undefined, ifname: string): Uint8Array | undefined {
  const mac = result === undefined ? undefined : ownInterface(result, ifname)?.mac;
  return mac === undefined ? undefined : parseMac(mac);
}
