/** An element of a verdict map: the packets of an interface go to a chain. */
import type { NftElement } from "../../linux/nftables/set.ts";
import { interfaceValue } from "../../linux/nftables/value.ts";

export function verdictElement(interfaceName: string, chain: string): NftElement {
  return { key: interfaceValue(interfaceName), data: { kind: "goto", chain } };
}
